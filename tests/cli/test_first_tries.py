"""What a new user runs into: wrong separators, a forgotten table, bad rows, names that are almost right."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from PIL import Image

import papi
from command import papi_exit_code
from papi.runs.folder import RunFolder

Out = pytest.CaptureFixture[str]
FLOWERS = ("rose", "tulip", "lily")
QUICK = ("--epochs", 1, "--threads", 1, "--device", "cpu", "--method", "proden", "--batch-size", 8, "--out", "run")


def photos(folder: Path, count: int = 12, suffix: str = ".png") -> list[str]:
    """Small images; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    names = [f"n{k}{suffix}" for k in range(count)]
    for name in names:
        Image.fromarray(random.integers(0, 255, (8, 8, 3), np.uint8)).save(folder / name)
    return names


def table(rows: Sequence[tuple[str, str]], header: str = "file_name,candidates") -> str:
    return "\n".join([header, *(f'{name},"{labels}"' for name, labels in rows)]) + "\n"


def pairs(separator: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Every second row has one label, the others two."""
    return [
        (name, FLOWERS[k % 3] if k % 2 else separator.join((FLOWERS[k % 3], FLOWERS[(k + 1) % 3])))
        for k, name in enumerate(names)
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.mark.parametrize("separator", [";", ", ", "/", " & "])
def test_another_separator_is_suspected_and_can_be_named(separator: str, here: Path, capsys: Out) -> None:
    Path("labels.csv").write_text(table(pairs(separator, photos(here / "photos"))))
    given = ("photos", "--candidates.file", "labels.csv")
    assert papi_exit_code("check", *given) == 0
    said = capsys.readouterr().out
    assert "6 classes" in said
    assert "look like several labels in one name: if so, set the separator" in said
    assert f"--candidates.separator '{separator.strip()}'" in said
    assert papi_exit_code("check", *given, "--candidates.separator", separator.strip()) == 0
    said = capsys.readouterr().out
    assert "3 classes" in said
    assert "several labels" not in said
    assert papi_exit_code("train", "--data", *given, *QUICK) == 0
    assert "several labels in one name" in capsys.readouterr().out


def test_spellings_of_a_name_are_suspected(here: Path, capsys: Out) -> None:
    rows = [(name, ("Rose", "rose|tulip", "roses|tulip")[k % 3]) for k, name in enumerate(photos(here / "photos"))]
    Path("labels.csv").write_text(table(rows))
    assert papi_exit_code("check", "photos", "--candidates.file", "labels.csv") == 0
    assert "'Rose' and 'rose' and 'roses'" in capsys.readouterr().out


def test_photos_that_nobody_names_are_mentioned(here: Path, capsys: Out) -> None:
    photos(here / "photos")
    photos(here / "photos" / "more", 4)
    Path("photos/labels.csv").write_text(table(pairs("|", [f"n{k}.png" for k in range(12)])))
    assert papi_exit_code("check", "photos") == 2
    said = capsys.readouterr().out
    assert "skipped 12 images in photos that are in no class folder" in said
    assert "--candidates.file" in said
    assert "only one class" in said


BAD = "file_name,candidates\nn0.png,rose|tulip\nn1.png,\nmissing.png,rose\nn2.png,tulip|tulip\nn3.png,rose|lily\n"


def test_bad_rows_are_left_out_when_asked(here: Path, capsys: Out) -> None:
    names = photos(here / "photos")
    Path("photos/n5.png").write_bytes(b"no image")
    Path("labels.csv").write_text(BAD + "".join(f"{name},rose|tulip\n" for name in names[4:]))
    given = ("--data", "photos", "--candidates.file", "labels.csv", *QUICK)
    assert papi_exit_code("train", *given) == 2
    capsys.readouterr()
    assert papi_exit_code("train", *given, "--skip-bad") == 0
    said = capsys.readouterr().out
    assert "4 problems in the data" in said
    for what in ("labels.csv, line 3", "missing.png", "labels.csv, line 5", "photos/n5.png"):
        assert f"left out: {what}" in said or f"'{what}'" in said, what
    sets = RunFolder(Path("run")).read_sets()
    assert sets.file_names is not None
    assert sets.file_names.tolist() == ["n0.png", "n3.png", "n4.png", *names[6:]]
    assert papi_exit_code("evaluate", "run") == 2  # it has no true labels, and the data are read as they were


def test_bad_rows_of_a_feature_table_are_left_out(here: Path, capsys: Out) -> None:
    random = np.random.default_rng(0)
    rows = [f"{x:.3f},{y:.3f},a|b" for x, y in random.normal(size=(20, 2))]
    rows[3], rows[5], rows[7] = "nan,1,a|b", "7.5,2,", "8.5,3,a"
    Path("f.csv").write_text("\n".join(["x,y,candidates", *rows]) + "\n")
    assert papi_exit_code("train", "--data", "f.csv", *QUICK, "--skip-bad") == 0
    assert "2 problems in the data" in capsys.readouterr().out
    sets = RunFolder(Path("run")).read_sets()
    assert len(sets.candidates) == 18
    assert sets.rows is not None
    assert 3 not in sets.rows
    assert 5 not in sets.rows
    assert np.flatnonzero(~sets.candidates.all(1)).tolist() == [sets.rows.tolist().index(7)]


def test_bad_images_in_folders_of_classes_are_left_out(here: Path, capsys: Out) -> None:
    for flower in FLOWERS:
        photos(here / "flowers" / flower, 8)
    Path("flowers/rose/n3.png").write_bytes(b"no image")
    assert papi_exit_code("train", "--data", "flowers", *QUICK, "--skip-bad") == 0
    assert "left out: flowers/rose/n3.png" in capsys.readouterr().out


def test_a_class_that_vanishes_is_told(here: Path, capsys: Out) -> None:
    """Whatever could be a ghost looks like an a: in the end nothing is a ghost."""
    sides = [("a", 3)] * 30 + [("b", -3)] * 30 + [("a|ghost", 3)] * 4
    rows = [f"{x + k % 7 / 10:.2f},{k % 3},{labels}" for k, (labels, x) in enumerate(sides)]
    Path("f.csv").write_text("\n".join(["x,y,candidates", *rows]) + "\n")
    options = ("--epochs", 20, "--threads", 1, "--method", "proden", "--out", "run")
    assert papi_exit_code("train", "--data", "f.csv", *options) == 0
    said = capsys.readouterr().out
    assert "Warning: no row was resolved to ghost" in said
    summary = RunFolder(Path("run")).read_summary()
    assert summary is not None
    assert summary.resolved_by_class == {"a": 34, "b": 30, "ghost": 0}
    assert papi_exit_code("report", "run") == 0


def test_a_model_is_measured_on_a_part_of_its_classes(here: Path, capsys: Out) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = (np.eye(3)[labels] * 4 + random.normal(size=(90, 3))).astype(np.float32)
    np.savez("whole.npz", features=features, labels=labels, class_names=np.array(FLOWERS))
    assert papi_exit_code("train", "--data", "whole.npz", *QUICK) == 0
    some = labels != 0
    np.savez("part.npz", features=features[some], labels=2 - labels[some], class_names=np.array(["lily", "tulip"]))
    capsys.readouterr()
    assert papi_exit_code("evaluate", "run", "--data", "part.npz") == 0
    said = capsys.readouterr().out
    assert "has 2 of the model's 3 classes" in said
    right = papi.load("run").predict(features[some]) == np.array(FLOWERS)[labels[some]]
    assert f"{right.mean():.2%} on 60" in said
    np.savez("other.npz", features=features, labels=labels, class_names=np.array(["rose", "tulip", "daisy"]))
    assert papi_exit_code("evaluate", "run", "--data", "other.npz") == 2
    assert "'daisy', which the model does not have" in capsys.readouterr().err


def test_predicting_a_folder_says_what_it_skips(here: Path, capsys: Out) -> None:
    photos(here / "photos")
    Path("photos/IMG_1.HEIC").write_bytes(b"x")
    Path("photos/notes.txt").write_text("x")
    Path("labels.csv").write_text(table(pairs("|", [f"n{k}.png" for k in range(12)])))
    assert papi_exit_code("train", "--data", "photos", "--candidates.file", "labels.csv", *QUICK) == 0
    capsys.readouterr()
    assert papi_exit_code("predict", "run", "photos", "--out", "out.csv") == 0
    said = capsys.readouterr().err
    assert "photos/IMG_1.HEIC" in said
    assert "photos/notes.txt" in said
    assert "pip install pillow-heif" in said


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_the_names_of_files_stay_with_features(kind: str, here: Path) -> None:
    names = [f"photo{k}.jpg" for k in range(20)]
    values = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    if kind == "csv":
        rows = [
            f"{name},{x:.3f},{y:.3f},{'a|b' if k % 2 else 'a'}"
            for k, (name, (x, y)) in enumerate(zip(names, values, strict=True))
        ]
        Path("f.csv").write_text("\n".join(["file_name,x,y,candidates", *rows]) + "\n")
    else:
        sets = np.stack([np.ones(20, bool), np.arange(20) % 2 == 1], 1)
        np.savez("f.npz", features=values, candidates=sets, file_names=np.array(names))
    assert papi_exit_code("train", "--data", f"f.{kind}", *QUICK) == 0
    kept = RunFolder(Path("run")).read_sets().file_names
    assert kept is not None
    assert kept.tolist() == names


@pytest.mark.parametrize(
    ("written", "meant"), [("bad/n4.png", "n4.png"), ("n4", "n4.png"), ("N4.PNG", "n4.png"), ("n4.jpg", "n4.png")]
)
def test_names_that_are_almost_right(written: str, meant: str, here: Path, capsys: Out) -> None:
    names = photos(here / "photos")
    Path("labels.csv").write_text(table([(written, "rose|tulip"), *pairs("|", names[5:])]))
    assert papi_exit_code("check", "photos", "--candidates.file", "labels.csv") == 2
    assert f"did you mean '{meant}'?" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["semicolons", "tabs", "tsv", "xlsx"])
def test_tables_as_spreadsheets_write_them(kind: str, here: Path, capsys: Out) -> None:
    rows = pairs("|", photos(here / "photos"))
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in [("file_name", "candidates"), *rows]:
            book.active.append(row)
        book.save("labels.xlsx")
    else:
        between = ";" if kind == "semicolons" else "\t"
        text = "".join(f"{name}{between}{labels}\n" for name, labels in [("file_name", "candidates"), *rows])
        Path("labels.tsv" if kind == "tsv" else "labels.csv").write_text(text)
    (file,) = here.glob("labels.*")
    assert papi_exit_code("check", "photos", "--candidates.file", file) == 0
    assert "12 images" in capsys.readouterr().out


def test_votes_where_nobody_has_two(here: Path, capsys: Out) -> None:
    names = photos(here / "photos")
    said = [f"{name},{who},{FLOWERS[(k + (k % 2) * who) % 3]}" for k, name in enumerate(names) for who in range(3)]
    Path("votes.csv").write_text("\n".join(["file_name,annotator,label", *said]) + "\n")
    given = ("photos", "--candidates.file", "votes.csv", "--candidates.votes")
    assert papi_exit_code("check", *given, "at-least-2") == 2
    assert "no label has enough votes" in capsys.readouterr().out
    assert papi_exit_code("check", *given, "at-least-2-else-union") == 0
    assert "50.0% have only one, 50.0% have all" in capsys.readouterr().out


def test_annotators_are_trusted_as_far_as_they_deserve(here: Path, capsys: Out) -> None:
    names = photos(here / "photos", 60)
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 60)
    said = [
        f"{name},{who},{FLOWERS[truth[k] if random.random() < skill else random.integers(3)]}"
        for k, name in enumerate(names)
        for who, skill in (("Ann", 0.95), ("Bob", 0.9), ("Cem", 0.3))
    ]
    Path("votes.csv").write_text("\n".join(["file_name,annotator,label", *said]) + "\n")
    given = ("photos", "--candidates.file", "votes.csv", "--candidates.votes", "dawid-skene")
    assert papi_exit_code("check", *given) == 0
    said_by_check = capsys.readouterr().out
    people = said_by_check.partition("Annotators")[2].partition("Disagreement")[0]
    assert people.index("Cem") < people.index("Bob")
    assert "Ann" in said_by_check.partition("Disagreement")[2]
    assert papi_exit_code("train", "--data", *given, *QUICK) == 0
    known = RunFolder(Path("run")).begun().annotators
    assert next(iter(known)) == "Cem"
    assert known["Cem"] < 0.6 < 0.8 < min(known["Ann"], known["Bob"])
    assert papi_exit_code("report", "run") == 0
    Path("counts.csv").write_text("file_name,rose,tulip\n" + "".join(f"{name},2,1\n" for name in names))
    counted = ("photos", "--candidates.file", "counts.csv", "--candidates.votes", "dawid-skene")
    capsys.readouterr()
    assert papi_exit_code("check", *counted) == 2
    assert "without annotators" in capsys.readouterr().out


def test_known_labels_without_candidates_count_when_asked(here: Path, capsys: Out) -> None:
    names = photos(here / "photos")
    rows = [f"{name},{'rose|tulip' if k % 2 else ''},{FLOWERS[k % 2]}" for k, name in enumerate(names)]
    Path("labels.csv").write_text("\n".join(["file_name,candidates,label", *rows]) + "\n")
    given = ("photos", "--candidates.file", "labels.csv")
    assert papi_exit_code("check", *given) == 2
    capsys.readouterr()
    assert papi_exit_code("check", *given, "--candidates.empty", "label") == 0
    assert "50.0% have only one" in capsys.readouterr().out
    Path("known.csv").write_text("file_name,label\n" + "".join(f"{n},{FLOWERS[k % 2]}\n" for k, n in enumerate(names)))
    assert papi_exit_code("check", "photos", "--candidates.file", "known.csv", "--candidates.empty", "label") == 0
    assert "100.0% have only one" in capsys.readouterr().out
