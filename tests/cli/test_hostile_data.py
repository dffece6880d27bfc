"""Data from strangers, through the command: one sentence, exit code 2, nothing written, nothing outside touched."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import published_files as published
from command import papi_exit_code
from model_files import write_model

Out = pytest.CaptureFixture[str]
ROWS = "file_name,candidates,label\na.png,cat|dog,cat\nb.png,dog|bird,dog\nc.png,cat,cat\n"
EPS = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\n"
    b"newpath 0 0 moveto 16 16 lineto stroke\nshowpage\n%%EOF\n"
)
NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs named pipes and names in bytes")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with images, a good table, and a file that is nobody's business; we stand in it."""
    folder = tmp_path / "here"
    published.write_images(folder / "images", ["a.png", "b.png", "c.png"], 16)
    (folder / "labels.csv").write_text(ROWS)
    (tmp_path / "private.txt").write_text("secret one\nsecret two\n")
    published.write_images(tmp_path / "outside", ["cat/a.png", "dog/b.png"], 16)
    monkeypatch.chdir(folder)
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, float] | None]:
    """What is there: names, and sizes and times of files."""
    found = ((each, each.lstat()) for each in sorted(folder.rglob("*")))
    return {str(each): None if each.is_dir() else (state.st_size, state.st_mtime) for each, state in found}


def refused(place: Path, capsys: Out, *arguments: object) -> str:
    """The one sentence of a command that must end with 2 and change nothing, inside or outside."""
    before = snapshot(place.parent)
    assert papi_exit_code(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("papi: ")
    assert said.count("\n") == 1, said
    assert len(said) < 2000
    assert snapshot(place.parent) == before
    return said


def train(*options: object) -> tuple[object, ...]:
    return ("train", *options, "--epochs", 1, "--threads", 1, "--out", "run")


def annotated(table: str = "labels.csv") -> tuple[object, ...]:
    return train("--data", "images", "--candidates.file", table)


# Pictures


@pytest.fixture
def ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `gs`, found first, that leaves a trace when it is started."""
    trace = tmp_path / "started"
    program = tmp_path / "programs" / "gs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntouch "{trace}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return trace


@NEEDS_LINUX
def test_a_picture_starts_no_program(place: Path, ghostscript: Path, capsys: Out) -> None:
    (place / "images" / "b.png").write_bytes(EPS)
    assert "b.png is not an image that can be read" in refused(place, capsys, *annotated())
    assert papi_exit_code("check", "images", "--candidates.file", "labels.csv") == 2
    model = write_model(place / "model")
    capsys.readouterr()
    assert papi_exit_code("predict", model, "images") == 0
    said = capsys.readouterr()
    assert "skipped 1 input" in said.err
    assert len(said.out.splitlines()) == 3
    assert "b.png is not an image" in refused(place, capsys, "predict", model, "images/b.png", "--out", "p.csv")
    assert not ghostscript.exists()


def test_what_counts_is_the_content_of_a_picture(place: Path, capsys: Out) -> None:
    Image.open(place / "images" / "b.png").save(place / "b.bmp")
    (place / "b.bmp").replace(place / "images" / "b.png")
    assert papi_exit_code("check", "images", "--candidates.file", "labels.csv") == 0
    assert "No problems found" in capsys.readouterr().out


# Folders that reach outside


def link(name: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink()
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target)

    return make


@pytest.mark.parametrize(
    ("spoil", "options", "says"),
    [
        (
            link("images/classes.txt", "../../private.txt"),
            annotated(),
            "classes.txt is a link that points outside images",
        ),
        (
            link("images/metadata.csv", "../labels.csv"),
            train("--data", "images"),
            "metadata.csv is a link that points outside",
        ),
        (link("new/train", "../../outside"), train("--data", "new"), "new/train is a link that points outside"),
        (link("new/cat", "../../outside/cat"), train("--data", "new"), "new/cat is a link that points outside"),
        (link("new/round", "."), train("--data", "new"), "new/round is a link to its own parent folder"),
        (link("images/b.png", "b.png"), annotated(), "line 3 names 'b.png', which is not in"),
        (link("images/b.png", "../../outside/cat/a.png"), annotated(), "line 3 names 'b.png', which is outside"),
        (link("images/b.png", "/dev/zero"), annotated(), "line 3 names 'b.png', which is outside"),
        (
            link("labels.csv", "labels.csv"),
            annotated(),
            "labels.csv cannot be read (Too many levels of symbolic links)",
        ),
        (link("mine.npz", "mine.npz"), train("--data", "mine.npz"), "mine.npz does not exist"),
        (link("mine.npz", "/dev/zero"), train("--data", "mine.npz"), "mine.npz cannot be read (it is a device"),
        (link("labels.csv", "/dev/zero"), annotated(), "labels.csv cannot be read (it is a device"),
    ],
)
def test_links(spoil: Callable[[Path], None], options: tuple[object, ...], says: str, place: Path, capsys: Out) -> None:
    spoil(place)
    assert says in refused(place, capsys, *options)


def test_links_inside_a_folder_are_followed(place: Path, capsys: Out) -> None:
    (place / "images" / "names").write_text("bird\ncat\ndog\n")
    (place / "images" / "classes.txt").symlink_to("names")
    (place / "images" / "b.png").unlink()
    (place / "images" / "b.png").symlink_to("a.png")
    (place / "labels.csv").rename(place / "images" / "table.csv")
    (place / "images" / "metadata.csv").symlink_to("table.csv")
    assert papi_exit_code("check", "images") == 0
    assert "3 images of 3 x 16 x 16 for training, 3 classes" in capsys.readouterr().out


def test_predict_leaves_out_links_that_lead_out(place: Path, capsys: Out) -> None:
    model = write_model(place / "model")
    (place / "images" / "far.png").symlink_to(place.parent / "outside/cat/a.png")
    (place / "images" / "near.png").symlink_to("a.png")
    (place / "images" / "self.png").symlink_to("self.png")
    (place / "images" / "far").symlink_to(place.parent / "outside")
    assert papi_exit_code("predict", model, "images") == 0
    said = capsys.readouterr()
    assert [row["file"] for row in csv.DictReader(io.StringIO(said.out))] == [
        f"images/{name}.png" for name in ("a", "b", "c", "near")
    ]
    assert "skipped 2 inputs" in said.err
    assert "images/far.png is a link that points outside images" in said.err
    assert "images/self.png cannot be read (Too many levels of symbolic links)" in said.err
    assert papi_exit_code("predict", model, "images/far.png") == 0  # a person has named it


# A run inside the data


def test_a_run_does_not_become_a_class(place: Path, capsys: Out) -> None:
    published.write_images(place / "photos", ["cat/a.png", "cat/b.png", "dog/a.png", "dog/b.png"], 16)
    arguments = ("train", "--data", "photos", "--epochs", 1, "--threads", 1)
    for out in ("photos/run", "photos/deep/run", "photos", "photos/cat/../run"):
        assert "where each subfolder is a class" in refused(place, capsys, *arguments, "--out", out)
    assert papi_exit_code(*arguments, "--out", "run", "--data.test-share", 0) == 0
    (place / "run").rename(place / "photos" / "run")
    capsys.readouterr()
    assert papi_exit_code("check", "photos") == 0
    assert "4 images of 3 x 16 x 16 for training, 2 classes" in capsys.readouterr().out


def test_a_run_beside_a_table_is_no_problem(place: Path) -> None:
    options = ("--data", "images", "--candidates.file", "labels.csv", "--epochs", 1, "--threads", 1)
    assert papi_exit_code("train", *options, "--out", "images/run") == 0
    assert papi_exit_code("train", *options, "--out", "images/run") == 0  # the same run, complete


def test_where_the_data_are_the_current_folder(place: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    published.write_images(place / "photos", ["cat/a.png", "dog/a.png"], 16)
    monkeypatch.chdir(place / "photos")
    assert "is inside ., where each subfolder is a class" in refused(
        place, capsys, "train", "--data", ".", "--epochs", 1
    )


# Feature tables in .mat files


def mat(**changes: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        target = np.eye(3)[:, np.arange(12) % 3]
        content: dict[str, object] = {"data": np.eye(12, 4), "partial_target": target.copy(), "target": target}
        savemat(path, content | changes)

    return write


def spoilt(row: int, column: int, value: float) -> np.ndarray:
    sets = np.eye(3)[:, np.arange(12) % 3]
    sets[row, column] = value
    return sets


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (mat(partial_target=spoilt(1, 4, 0)), "mine.mat, row 5: the candidate set is empty"),
        (mat(partial_target=spoilt(2, 4, np.nan)), "column 5 of partial_target must contain 0 and 1; got nan in row 3"),
        (mat(partial_target=spoilt(0, 1, -3)), "column 2 of partial_target must contain 0 and 1; got -3.0 in row 1"),
        (mat(partial_target=spoilt(0, 1, 0.3)), "column 2 of partial_target must contain 0 and 1; got 0.3 in row 1"),
        (mat(target=spoilt(0, 1, 0.3)), "column 2 of target must contain 0 and 1; got 0.3 in row 1"),
        (mat(partial_target=np.roll(spoilt(0, 0, 1), 1, 0)), "mine.mat, row 1: the true label '0' is not among the"),
        (mat(data=np.full((12, 4), np.nan)), "mine.mat, row 1 has nan in feature 1"),
        (mat(data=np.full((12, 4), 1e300)), "mine.mat, row 1 has inf in feature 1"),
        (mat(partial_target="text"), "partial_target in mine.mat must be a matrix of numbers"),
        (lambda path: path.write_bytes(b"MATLAB 5.0" + bytes(300)), "mine.mat is not a readable .mat file"),
        (lambda path: path.write_bytes(b""), "mine.mat is not a readable .mat file"),
    ],
)
def test_mat_files(write: Callable[[Path], None], says: str, place: Path, capsys: Out) -> None:
    write(place / "mine.mat")
    assert says in refused(place, capsys, *train("--data", "mine.mat"))


def test_a_truth_outside_its_set_is_allowed_on_request(place: Path, capsys: Out) -> None:
    mat(partial_target=np.roll(spoilt(0, 0, 1), 1, 0))(place / "mine.mat")
    assert papi_exit_code("check", "mine.mat", "--candidates.allow-missing-truth") == 0
    assert "12 of 12 rows in mine.mat have a true label that is not a candidate" in capsys.readouterr().out


def test_check_counts_every_bad_row_of_a_mat_file(place: Path, capsys: Out) -> None:
    sets = spoilt(1, 4, 0)
    sets[0, 3] = 0
    mat(partial_target=sets)(place / "mine.mat")
    assert papi_exit_code("check", "mine.mat") == 2
    said = capsys.readouterr().out
    assert "2 problems found" in said
    assert "10 features of 4 for training" in said


# Tables and arrays that promise too much


DEEP = "[" * 5000 + "]" * 5000
LONG = "9" * 5000


def jsonl(*lines: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "labels.csv").rename(folder / "old") and (folder / "t.jsonl").write_text(
        "\n".join(['{"file_name": "a.png", "candidates": ["cat", "dog"]}', *lines, ""])
    ) and None  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f'{{"file_name": "b.png", "candidates": {DEEP}}}', "t.jsonl, line 2 is not valid JSON"),
        (
            f'{{"file_name": "b.png", "candidates": {"[" * 300 + "]" * 300}}}',
            "line 2 has candidates that are not a list",
        ),
        (f'{{"file_name": {"[" * 300 + "]" * 300}, "candidates": ["cat"]}}', "line 2 names '[["),
        (f'{{"file_name": "b.png", "candidates": "{DEEP}"}}', "line 2 has candidates that are not a list of labels"),
        (f'{{"file_name": "b.png", "candidates": [{LONG}]}}', "t.jsonl, line 2 is not valid JSON"),
        (f'{{"file_name": "b.png", "candidates": ["cat"], "label": "{LONG}"}}', "line 2: unknown label '9999"),
        ('{"file_name": "b.png", "candidates": ["c\\u0000t"]}', "line 2 has the class 'c\\x00t', which contains a"),
        ('{"file_name": "b.png", "candidates": ["cat"], "label": "\\u0000"}', "line 2 has the class '\\x00'"),
        ('{"file_name": "./a.png", "candidates": ["cat"]}', "line 2 and t.jsonl, line 1 both describe './a.png'"),
        ('{"file_name": "x/../a.png", "candidates": ["cat"]}', "line 2 and t.jsonl, line 1 both describe 'x/../a.png'"),
        ('{"file_name": "b.png", "candidates": {"cat": [1]}}', "line 2"),
        ('{"file_name": "b.png", "candidates": [1e400]}', "line 2 has candidates that are not a list of labels"),
        ('{"file_name": "b.png", "candidates": [null]}', "line 2 has candidates that are not a list of labels"),
        ('{"file_name": "b.png", "candidates": ["\\ud800"]}', "line 2 has half a character"),
    ],
)
def test_lines_of_json(line: str, says: str, place: Path, capsys: Out) -> None:
    jsonl(line)(place)
    assert says in refused(place, capsys, *annotated("t.jsonl"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ROWS + "./a.png,cat,\n", "line 5 and labels.csv, line 2 both describe './a.png'"),
        (ROWS.replace("bird", "bi\0rd"), "line 3 has the class 'bi\\x00rd', which contains a NUL"),
        ("file_name,cat,do\0g\na.png,1,0\nb.png,0,1\n", "line 3 has the class 'do\\x00g', which contains a NUL"),
        ("file_name,cat,dog\na.png,1,0\nb.png,0,1e300\n", "line 3 has '1e300' in the column 'dog'"),
        (f"file_name,cat,dog\na.png,1,0\nb.png,0,{LONG}\n", "line 3 has '9999"),
        ("file_name,cat,dog,x\0\na.png,1,0,0\nb.png,0,1,0\n", "labels.csv has the class 'x\\x00', which contains a"),
        ("file_name,cat,dog\na.png,1,0\nb.png,0,inf\n", "line 3 has 'inf' in the column 'dog'"),
        ("file_name,cat,dog\na.png,1,0\nb.png,0,-1\n", "line 3 has '-1' in the column 'dog'"),
        (ROWS + f"{'x' * 5000},cat,\n", "which is not in images"),
    ],
)
def test_tables(text: str, says: str, place: Path, capsys: Out) -> None:
    (place / "labels.csv").write_text(text)
    assert says in refused(place, capsys, *annotated())


def test_numbers_of_many_digits_are_names_like_others(place: Path, capsys: Out) -> None:
    (place / "labels.csv").write_text(f"file_name,candidates\na.png,{LONG}|2\nb.png,10\nc.png,2\n")
    assert papi_exit_code("check", "images", "--candidates.file", "labels.csv") == 0
    assert "3 classes" in capsys.readouterr().out


def test_a_row_of_very_many_candidates_takes_seconds(place: Path, capsys: Out) -> None:
    rows = [{"file_name": "a.png", "candidates": [f"c{k}" for k in range(100_000)]}]
    rows += [{"file_name": "b.png", "candidates": ["c1"]}, {"file_name": "c.png", "candidates": ["d"], "label": "e"}]
    (place / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert papi_exit_code("check", "images", "--candidates.file", "t.jsonl") == 2
    said = capsys.readouterr().out
    assert "1 problem found" in said
    assert len(said) < 300_000


def test_check_shows_some_of_very_many_problems(place: Path, capsys: Out) -> None:
    lines = "".join(f"missing-{k}.png,cat|dog,\n" for k in range(5000))
    (place / "labels.csv").write_text(ROWS + lines)
    assert papi_exit_code("check", "images", "--candidates.file", "labels.csv") == 2
    said = capsys.readouterr().out
    assert said.count("Problem: ") == 20
    assert "5,000 problems found. The first 20 are shown." in said


def npy_header(shape: str, descr: str = "'|u1'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def archive(**members: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as opened:
            for name, content in members.items():
                opened.writestr(name.replace("_npy", ".npy").replace("_txt", ".txt"), content)

    return write


def encrypted(path: Path) -> None:
    """The flag alone says so."""
    np.savez(path, images=np.zeros((4, 8, 8), np.uint8), labels=np.arange(4))
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := content.find(signature, start + 1)) >= 0:
            content[start + place] |= 1
    path.write_bytes(content)


def arrays(**changes: np.ndarray) -> Callable[[Path], None]:
    content: dict[str, np.ndarray] = {"images": np.zeros((4, 8, 8), np.uint8), "labels": np.arange(4)} | changes
    return lambda path: np.savez(path, **content)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "write",
    [
        arrays(labels=np.array([0, 1, 2, 10**12])),
        arrays(labels=np.array([0, 1, 2, 2**64 - 1], np.uint64)),
        arrays(labels=np.array([0, 1, 2, -5])),
        arrays(counts=np.array([[1, 1e300]] * 4)),
        arrays(counts=np.array([[1, np.nan]] * 4)),
        arrays(candidates=np.array([["a", "b"]] * 4)),
        arrays(class_names=np.array(["a", "b", "c", "d\0e"])),
        archive(images_npy=npy_header(f"({2**62}, 1, 1)"), labels_npy=npy_header("(4,)") + bytes(4)),
        archive(images_npy=npy_header(f"({2**62}, {2**62}, 8)")),
        archive(images_npy=npy_header("(-4, 8, 8)")),
        archive(images_npy=npy_header("(4, 8, 8)", "'|O'") + bytes(256)),
        archive(images_npy=npy_header("(" * 40 + ")" * 40)),
        archive(images_npy=b"text", labels_npy=b""),
        archive(readme_txt=b"hello", images_txt=b"1 2 3"),
        encrypted,
        lambda path: path.write_bytes(b"PK\x05\x06" + bytes(18)),
        lambda path: path.write_bytes(b"\x93NUMPY"),
    ],
)  # fmt: skip
def test_arrays(write: Callable[[Path], None], place: Path, capsys: Out) -> None:
    write(place / "mine.npz")
    assert "mine.npz" in refused(place, capsys, *train("--data", "mine.npz"))
    model = write_model(place / "model")
    assert papi_exit_code("predict", model, "mine.npz") in (0, 2)  # the images of some are good


@pytest.mark.parametrize(
    "content",
    [
        npy_header(f"({2**62}, 1, 8, 8)"),
        npy_header(f"(4, {2**62})"),
        npy_header(f"({2**62},)"),
        npy_header("(4, 8, 8)", f"'<U{2**30}'"),
        npy_header("(True, [])"),
        npy_header("(4, 8, 8)", "[('a', '<i8'), ('b', 'O')]"),
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_arrays_to_predict(content: bytes, place: Path, capsys: Out) -> None:
    model = write_model(place / "model")
    (place / "x.npy").write_bytes(content)
    assert "x.npy" in refused(place, capsys, "predict", model, "x.npy", "--out", "p.csv")
    (place / "matrix.npy").write_bytes(content)
    options = ("--data", "digits", "--candidates.kind", "class-dependent", "--candidates.matrix", "matrix.npy")
    assert "matrix.npy" in refused(place, capsys, *train(*options))


# Pipes


class _WaitsError(BaseException):
    """A command waits for something that never comes."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise _WaitsError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@NEEDS_LINUX
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("t.csv", ("check", "images", "--candidates.file", "t.csv")),
        ("t.jsonl", ("check", "images", "--candidates.file", "t.jsonl")),
        ("t.parquet", ("check", "images", "--candidates.file", "t.parquet")),
        ("t.npz", ("check", "images", "--candidates.file", "t.npz")),
        ("f.csv", ("check", "f.csv")),
        ("f.npz", ("check", "f.npz")),
        ("f.mat", ("check", "f.mat")),
        ("images/b.png", ("check", "images", "--candidates.file", "labels.csv")),
        ("lost.mat", ("check", "lost", "--data-dir", ".")),
    ],
)
def test_pipes_are_refused_at_once(name: str, arguments: tuple[str, ...], place: Path, capsys: Out) -> None:
    (place / name).unlink(missing_ok=True)
    os.mkfifo(place / name)
    assert papi_exit_code(*arguments) == 2
    said = capsys.readouterr()
    assert "1 problem found" in said.out
    assert not said.err


@NEEDS_LINUX
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.png"])
def test_pipes_to_predict(name: str, place: Path, capsys: Out) -> None:
    model = write_model(place / "model", "mlp", (2,)) if name == "x.csv" else write_model(place / "model")
    os.mkfifo(place / name)
    assert name in refused(place, capsys, "predict", model, name, "--out", "p.csv")


@NEEDS_LINUX
@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(("kind", "option"), [("class-dependent", "matrix"), ("hierarchical", "groups")])
@pytest.mark.parametrize("name", ["x.csv", "x.npy"])
def test_pipes_beside_the_data(kind: str, option: str, name: str, place: Path, capsys: Out) -> None:
    os.mkfifo(place / name)
    options = ("--data", "digits", "--candidates.kind", kind, f"--candidates.{option}", name)
    assert name in refused(place, capsys, *train(*options))


# Names


def start(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, with its own locale."""
    command = [sys.executable, "-m", "papi", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip


@NEEDS_LINUX
def test_names_are_utf8_whatever_the_locale_is(place: Path) -> None:
    """Python turns names of another encoding than the locale's into halves of characters."""
    published.write_images(place / "blüten", ["träne/ä.png", "träne/ö.png", "veilchen/ü.png", "veilchen/é.png"], 16)
    table = "file_name,candidates\n" + "träne/ä.png,träne|veilchen\nveilchen/ü.png,veilchen\n"
    (place / "wörter.csv").write_text(table, encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for environment in ({"LC_ALL": "C"}, plain):
        for arguments in (("blüten",), ("blüten", "--candidates.file", "wörter.csv")):
            done = start("check", *arguments, **environment)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "2 classes" in done.stdout
    model = write_model(place / "model")
    done = start("predict", model, "blüten", "--out", "p.csv", **plain)
    assert done.returncode == 0, done.stderr
    found = [row["file"] for row in csv.DictReader(io.StringIO((place / "p.csv").read_text(encoding="utf-8")))]
    assert found == [f"blüten/{name}" for name in ("träne/ä.png", "träne/ö.png", "veilchen/é.png", "veilchen/ü.png")]


STEERING = "\x1b[2J\x9b31m\u202egnp\u2066\u200e\x07"


@NEEDS_LINUX
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_predictions_cannot_steer_the_terminal(kind: str, place: Path, capsys: Out) -> None:
    published.write_images(place / "new", [f"{STEERING}.png", "blüte\u202f1.png", "two\nlines.png"], 16)
    model = write_model(place / "model", classes=(f"cat{STEERING}", "dog", "bird"))
    assert papi_exit_code("predict", model, "new", "--format", kind) == 0
    said = capsys.readouterr()
    for character in f"{STEERING}\r".replace("[2J", "").replace("31m", "").replace("gnp", ""):
        assert character not in said.out + said.err
    assert "blüte\u202f1.png" in said.out  # spaces of any width are harmless
    names = {str(file.relative_to(place)) for file in (place / "new").iterdir()}
    if kind == "jsonl":
        assert {json.loads(line)["file"] for line in said.out.splitlines()} == names
    else:
        assert len(list(csv.DictReader(io.StringIO(said.out)))) == 3
    assert papi_exit_code("predict", model, "new", "--out", f"p.{kind}") == 0
    written = (place / f"p.{kind}").read_text(encoding="utf-8")
    lines = csv.DictReader(io.StringIO(written)) if kind == "csv" else map(json.loads, written.splitlines())
    assert {row["file"] for row in lines} == names


def test_cells_that_a_spreadsheet_would_compute(place: Path, capsys: Out) -> None:
    published.write_images(place, ["=1+1.png", "-x.png", "a-b.png"], 16)
    model = write_model(place / "model", classes=("@cat", "dog", "bird"))
    paths = ("./=1+1.png", "=1+1.png", "a-b.png")
    for options, expected in (((), {"=1+1.png": "'=1+1.png"}), (("--raw",), {})):
        assert papi_exit_code("predict", model, *paths, "--top-k", 3, "--out", "p.csv", *options) == 0
        rows = list(csv.DictReader(io.StringIO((place / "p.csv").read_text())))
        assert [row["file"] for row in rows] == [expected.get(str(Path(name)), str(Path(name))) for name in paths]
        labels = {row[column] for row in rows for column in ("label", "label_2", "label_3")}
        assert labels == {"@cat" if options else "'@cat", "dog", "bird"}
    assert papi_exit_code("predict", model, *paths, "--out", "p.jsonl") == 0
    assert json.loads((place / "p.jsonl").read_text().splitlines()[0])["file"] == "=1+1.png"


@pytest.mark.parametrize("out", ["images/a.png", "x.npy", "model/model.safetensors", "images/../x.npy"])
def test_predictions_do_not_replace_what_they_are_made_from(out: str, place: Path, capsys: Out) -> None:
    model = write_model(place / "model")
    np.save(place / "x.npy", np.zeros((2, 8, 8), np.uint8))
    for path in ("images", "x.npy") if out != "images/a.png" else ("images", "images/a.png"):
        arguments = ("predict", model, path, "x.npy", "--out", out)
        assert "is an input of this command" in refused(place, capsys, *arguments)


def test_a_list_of_classes_with_a_nul(place: Path, capsys: Out) -> None:
    (place / "images" / "classes.txt").write_text("cat\ndog\nbi\0rd\nbird\n")
    assert "classes.txt has the class 'bi\\x00rd', which contains a NUL" in refused(place, capsys, *annotated())
