"""`papi init` on folders as people have them: it guesses right, or asks one question."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command import papi_exit_code
from papi.cli.options_file import read_options
from papi.runs.folder import RunFolder

Out = pytest.CaptureFixture[str]
SETS = ("rose|tulip", "tulip", "lily|rose")


def photos(folder: Path, count: int = 12) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(count)
    for k in range(count):
        Image.fromarray(random.integers(0, 255, (8, 8, 3), np.uint8)).save(folder / f"p{k}.png")
    return [f"p{k}.png" for k in range(count)]


def csv(names: list[str], between: str = "|", header: str = "file_name,candidates", comma: str = ",") -> str:
    rows = [f'{name}{comma}"{SETS[k % 3].replace("|", between)}"' for k, name in enumerate(names)]
    return "\n".join([header.replace(",", comma), *rows]) + "\n"


def beside(folder: Path) -> None:
    (folder / "labels.csv").write_text(csv(photos(folder)))


def apart(folder: Path) -> None:
    (folder / "labels.csv").write_text(csv(photos(folder / "photos")))


def with_folders(folder: Path) -> None:
    (folder / "labels.csv").write_text(csv([f"photos/{name}" for name in photos(folder / "photos")]))


def metadata(folder: Path) -> None:
    (folder / "metadata.csv").write_text(csv(photos(folder)))


def semicolons(folder: Path) -> None:
    (folder / "labels.csv").write_text(csv(photos(folder), between=" / ", comma=";"))


def votes(folder: Path) -> None:
    flowers = ("rose", "tulip", "lily")
    answers = ((name, who, flowers[(k + who * (k % 2)) % 3]) for k, name in enumerate(photos(folder)) for who in (1, 2))
    rows = [f"{name},{who},{flower}" for name, who, flower in answers]
    (folder / "votes.csv").write_text("\n".join(["file_name,annotator,label", *rows]) + "\n")


def counts(folder: Path) -> None:
    rows = [f"{name},{k % 3},2,{k % 2}" for k, name in enumerate(photos(folder))]
    (folder / "counts.csv").write_text("\n".join(["file_name,rose,tulip,lily", *rows]) + "\n")


def label_studio(folder: Path) -> None:
    tasks = []
    for k, name in enumerate(photos(folder / "images")):
        value = {"choices": SETS[k % 3].split("|")}
        result = [{"type": "choices", "from_name": "flower", "to_name": "image", "value": value}]
        image = f"/data/upload/1/1234abcd-{name}"
        tasks.append({"id": k, "data": {"image": image}, "annotations": [{"completed_by": 1, "result": result}]})
    (folder / "export.json").write_text(json.dumps(tasks))


def by_class(folder: Path) -> None:
    for name in ("rose", "tulip"):
        photos(folder / name, 10)


def feature_table(folder: Path) -> None:
    rows = [f"{k / 7:.3f},{k % 5 / 3:.3f},{SETS[k % 3]}" for k in range(30)]
    (folder / "measured.csv").write_text("\n".join(["x,y,candidates", *rows]) + "\n")


def arrays(folder: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (12, 8, 8), np.uint8)
    np.savez(folder / "images.npz", images=images, class_names=np.array(["lily", "rose", "tulip"]))
    rows = "".join(f"{SETS[k % 3]}\n" for k in range(12))
    (folder / "labels.csv").write_text(f"candidates,label\n{rows}".replace("\n", ",\n").replace("label,", "label"))


def beside_an_old_run(folder: Path) -> None:
    beside(folder)
    run = folder / "runs" / "old"
    run.mkdir(parents=True)
    for name in ("config.json", "candidates.npz"):
        (run / name).write_bytes(b"")
    (run / "labels.csv").write_text(csv(["p1.png"]))


RIGHT: dict[str, tuple[Callable[[Path], None], dict[str, object]]] = {
    "a table beside the photos": (beside, {"data": ".", "candidates.file": "labels.csv"}),
    "photos in a folder": (apart, {"data": "photos", "candidates.file": "labels.csv"}),
    "names with their folder": (with_folders, {"data": ".", "candidates.file": "labels.csv"}),
    "metadata.csv": (metadata, {"data": "."}),
    "other separators": (semicolons, {"data": ".", "candidates.file": "labels.csv", "candidates.separator": "/"}),
    "votes": (votes, {"data": ".", "candidates.file": "votes.csv", "candidates.votes": "dawid-skene"}),
    "counted votes": (counts, {"data": ".", "candidates.file": "counts.csv", "candidates.weigh": "auto"}),
    "Label Studio": (label_studio, {"data": "images", "candidates.file": "export.json"}),
    "class folders": (by_class, {"data": ".", "out": "../here-run"}),
    "a feature table": (feature_table, {"data": "measured.csv"}),
    "arrays and a table": (arrays, {"data": "images.npz", "candidates.file": "labels.csv"}),
    "an earlier run": (beside_an_old_run, {"data": ".", "candidates.file": "labels.csv"}),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_there_is_understood(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    make, options = RIGHT[kind]
    folder = tmp_path / "here"
    folder.mkdir()
    make(folder)
    assert papi_exit_code("init", folder) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) <= 6
    assert {name: values[0] for name, values in read_options(folder / "papi.toml").items()} == options
    assert said[-1].startswith(f"Next: cd {folder} && papi check")
    monkeypatch.chdir(folder)
    assert papi_exit_code("check") == 0
    assert "No problems found" in capsys.readouterr().out


def test_training_needs_no_arguments_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    apart(tmp_path)
    assert papi_exit_code("init", tmp_path) == 0
    monkeypatch.chdir(tmp_path)
    file = Path("papi.toml")
    file.write_text(file.read_text() + 'epochs = 1\nthreads = 1\nmethod = "proden"\nbatch-size = 4\n')
    assert papi_exit_code("train") == 0
    (run,) = Path("runs").iterdir()
    assert len(RunFolder(run).read_sets().candidates) == 12


def two_tables(folder: Path) -> None:
    names = photos(folder)
    (folder / "first.csv").write_text(csv(names))
    (folder / "second.csv").write_text(csv(names[::-1]))


def test_without_a_terminal_a_question_is_a_sentence(tmp_path: Path, capsys: Out) -> None:
    two_tables(tmp_path)
    assert papi_exit_code("init", tmp_path) == 2
    said = capsys.readouterr().err
    assert "Which file has the candidate labels? Set --candidates.file to one of:" in said
    assert "second.csv" in said
    assert not (tmp_path / "papi.toml").exists()
    assert papi_exit_code("init", tmp_path, "--candidates.file", tmp_path / "second.csv") == 0
    assert read_options(tmp_path / "papi.toml")["candidates.file"] == ["second.csv"]


def test_a_person_is_asked_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_tables(tmp_path)
    answers = iter(["9", "", "2"])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stdin", type("Keyboard", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    assert papi_exit_code("init", tmp_path) == 0
    assert read_options(tmp_path / "papi.toml")["candidates.file"] == ["second.csv"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: photos(folder), "12 images, but no table that lists them"),
        (lambda folder: None, "no images and no table or array"),
        (lambda folder: (folder / "labels.csv").write_text(csv(["a.png"])), "no images and no table or array"),
        (lambda folder: (folder / "papi.toml").write_text(""), "already exists"),
    ],
)
def test_what_cannot_be_understood(make: Callable[[Path], object], says: str, tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert papi_exit_code("init", tmp_path) == 2
    assert says in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
    assert papi_exit_code("init", tmp_path / "nowhere") == 2
    assert "is not a folder" in capsys.readouterr().err


def test_names_that_need_care(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s "mine"\\ üñ'
    apart(folder)
    (folder / "photos").rename(folder / 'ph"otos')
    assert papi_exit_code("init", folder) == 0
    assert read_options(folder / "papi.toml")["data"] == ['ph"otos']
    assert papi_exit_code("init", folder) == 2
    assert papi_exit_code("init", folder, "--force") == 0
