"""Every mistake in one's own data ends in one sentence with file and line, exit code 2, and nothing written."""

import os
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import published_files as published
from command import papi_exit_code

ROWS = "file_name,candidates,label\na.png,cat|dog,cat\nb.png,dog|bird,dog\nc.png,cat,cat\n"


def write_table(text: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    return lambda folder: (folder / "labels.csv").write_bytes(text.encode(encoding)) and None


def damage(folder: Path) -> None:
    content = (folder / "images/b.png").read_bytes()
    (folder / "images/b.png").write_bytes(content[: len(content) // 2])


def bomb(folder: Path) -> None:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    (folder / "images/b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", b"") + chunk(b"IEND", b""))


def link_out(folder: Path) -> None:
    (folder / "images/b.png").rename(folder / "outside.png")
    (folder / "images/b.png").symlink_to("../outside.png")


HEAD = "file_name,candidates,label\n"
CASES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing image": (lambda f: (f / "images/b.png").unlink(), "labels.csv, line 3 names 'b.png', which is not in"),
    "unreadable image": (lambda f: (f / "images/b.png").write_bytes(b"text"), "b.png is not an image that can be read"),
    "truncated image": (damage, "b.png is damaged"),
    "image bomb": (bomb, "b.png has too many pixels"),
    "link that leads out": (link_out, "line 3 names 'b.png', which is outside"),
    "dots that lead out": (write_table(HEAD + "../labels.csv,cat|dog,\n"), "names '../labels.csv', which is outside"),
    "absolute path": (write_table(HEAD + "/etc/passwd,cat|dog,\n"), "line 2 names '/etc/passwd', which is outside"),
    "unknown label": (write_table(ROWS + "d.png,cat,dgo\n"), "line 5: unknown label 'dgo': did you mean 'dog'"),
    "empty set": (write_table(ROWS + "d.png,,\n"), "line 5: the candidate set is empty"),
    "candidate twice": (write_table(ROWS + "d.png,cat|cat,\n"), "line 5 lists the candidate 'cat' twice"),
    "truth outside": (write_table(ROWS + "d.png,cat,dog\n"), "line 5: the true label 'dog' is not among the"),
    "file twice": (write_table(ROWS + "a.png,cat,\n"), "both describe 'a.png'"),
    "no rows": (write_table(HEAD), "labels.csv has no usable rows"),
    "spaces": (write_table(ROWS.replace(",", " ")), "labels.csv has no column"),
    "named pipe": (lambda f: (f / "images/b.png").unlink() or os.mkfifo(f / "images/b.png"),
                   "line 3 names 'b.png', which is not a regular file in images"),
    "one class": (write_table(HEAD + "a.png,cat,\nb.png,cat,\n"), "has only one class"),
    "full sets": (write_table(HEAD + "a.png,cat|dog,\nb.png,cat|dog,\n"), "contains all 2 labels"),
    "encoding": (write_table(ROWS + "d.png,kätzchen|dog,\n", "latin-1"), "labels.csv, line 5 is not UTF-8"),
    "missing column": (write_table(ROWS.replace("file_name", "filename")), "did you mean 'filename'?"),
    "missing table": (lambda f: (f / "labels.csv").unlink(), "labels.csv cannot be read (No such file"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with images and a good table; we stand in it."""
    published.write_images(tmp_path / "images", ["a.png", "b.png", "c.png", "d.png"], 16)
    (tmp_path / "labels.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str, place: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, message = CASES[case]
    spoil(place)
    before = sorted(place.rglob("*"))
    options = ("--data", "images", "--candidates.file", "labels.csv", "--out", "run")
    assert papi_exit_code("train", *options) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert said.startswith("papi: ")
    assert sorted(place.rglob("*")) == before
    assert not list(cache.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_check_tells_the_same(case: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, message = CASES[case]
    spoil(place)
    assert papi_exit_code("check", "images", "--candidates.file", "labels.csv") == 2
    assert message in capsys.readouterr().out


NOT_UTF8 = pytest.mark.skipif(sys.platform != "linux", reason="the file system takes no such name")


@NOT_UTF8
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"cat/bad\xff.png", r"images/cat/bad\xff.png"),
        (b"cat/deep\xff/0.png", r"images/cat/deep\xff/0.png"),
        (b"bad\xff/0.png", r"images/bad\xff"),
    ],
)
def test_names_that_are_not_utf8(
    name: bytes, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    published.write_images(Path("images"), ["cat/a.png", "dog/a.png", os.fsdecode(name)], 16)
    message = f"{shown} has a name that is not UTF-8: rename it."
    assert papi_exit_code("train", "--data", "images", "--out", "run") == 2
    assert capsys.readouterr().err == f"papi: {message}\n"
    assert papi_exit_code("check", "images") == 2
    said = capsys.readouterr().out
    assert f"Problem: {message}" in said
    assert "2 classes" in said
    assert os.listdir() == ["images"]


@NOT_UTF8
def test_a_path_that_is_not_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = os.fsdecode(b"bad\xff")
    published.write_images(Path(folder), ["cat/a.png", "dog/a.png"], 16)
    assert papi_exit_code("train", "--data", f"./{folder}", "--out", "run") == 2
    assert capsys.readouterr().err == "papi: bad\\xff has a name that is not UTF-8: rename it.\n"


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            "file_name,annotator,label,true_label\na.png,x,violet,violet\nb.png,x,rose,rose\n",
            ("--candidates.votes", "at-least-9"),
            "no label in labels.csv has 9 votes, the maximum is 1: use a smaller number in --candidates.votes.",
        ),
        (ROWS, ("--candidates.votes", "at-least-2"), "labels.csv has no votes: leave out --candidates.votes."),
        (
            ROWS,
            ("--candidates.weigh", "auto"),
            "labels.csv has neither votes nor weights: leave out --candidates.weigh.",
        ),
    ],
)
def test_options_for_votes(
    table: str, options: tuple[str, ...], message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(table)(place)
    arguments = ("--data", "images", "--candidates.file", "labels.csv", *options, "--out", "run")
    assert papi_exit_code("train", *arguments) == 2
    assert capsys.readouterr().err == f"papi: {message}\n"
    assert not Path("run").exists()


def test_different_numbers_of_rows_and_images(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("mine.npz", images=np.zeros((4, 8, 8), np.uint8))
    options = ("--data", "mine.npz", "--candidates.file", "labels.csv", "--out", "run")
    assert papi_exit_code("train", *options) == 2
    assert "labels.csv has 3 rows, but mine has 4 training images" in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.csv", "x,y,candidates\n1,2,a|b\n1,nan,a\n", "f.csv, line 3 has 'nan' in the column 'y'"),
        ("f.csv", "x,y,candidates\n1,2,a|b\n1,inf,a\n", "f.csv, line 3 has 'inf' in the column 'y'"),
        ("f.csv", "x,y,candidates\n1,2,a|b\n1,two,a\n", "f.csv, line 3 has 'two' in the column 'y'"),
        ("f.csv", "x,y,candidates\n1,2,a|b\n1,-1e39,a\n", "f.csv, line 3 has '-1e39' in the column 'y'"),
        ("f.csv", "x;y;candidates\n1,5;2;a|b\n", "f.csv, line 2 has '1,5' in the column 'x'"),
        ("f.csv", "candidates\na|b\n", "f.csv has no feature columns"),
        ("f.csv", "x,candidates\n", "f.csv has no usable rows"),
        ("f.csv", "x,candidates\n1,a|b\n", "f has only one usable row"),
        ("f.csv", "x,y\n1,2\n", "f.csv has no column candidates"),
        ("f.txt", "1 2 3", "f.txt cannot be read"),
    ],
)
def test_bad_feature_tables(
    name: str,
    content: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    assert papi_exit_code("train", "--data", name, "--out", "run") == 2
    assert message in capsys.readouterr().err
    assert os.listdir() == [name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "nowhere/"), "nowhere does not exist"),
        (("--data", "digits", "--data.size", "20"), "--data.size is only for your own images"),
        (("--data", "digits", "--candidates.kind", "hierarchical"), "digits has no superclasses"),
        (
            ("--data", "digits", "--candidates.kind", "class-dependent", "--candidates.matrix", "09"),
            "unknown matrix '09'",
        ),
        (("--data", "digits", "--candidates.matrix", "01"), "--candidates.matrix requires --candidates.kind class-dep"),
        (("--data", "digits", "--candidates.votes", "most"), "--candidates.votes must be union, vaguest, dawid-skene"),
        (("--data", "digits", "--candidates.file", "x.csv", "--candidates.kind", "noisy"), "cannot be used together"),
        (("--data", "digits", "--data.split", "test"), "digits has no published test split"),
        (("--data", "digits", "--network", "mlp"), "the network mlp takes features, and these data are images"),
        (("--data", "digits", "--candidates.noise-rate", "0.3"), "--candidates.noise-rate has no effect for candidate"),
        (
            ("--data", "digits", "--candidates.kind", "uniform-sets", "--candidates.flip-rate", "0.3"),
            "--candidates.flip-rate has no effect for candidate sets that are of the kind uniform-sets",
        ),
        (("--data", "digits", "--device", "meta"), "--device meta is not supported"),
        (("--data", "digits", "--data.test-share", "1"), "--data.test-share must be a number in [0, 1)"),
    ],
)
def test_bad_options(
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert papi_exit_code("train", *options, "--out", "run") == 2
    captured = capsys.readouterr()
    assert message in " ".join((captured.err + captured.out).split()).replace("│ ", "")
    assert not os.listdir()


@pytest.mark.parametrize("kind", [("uniform",), ("uniform-sets",), ("noisy", "--candidates.noise-rate", "1")])
def test_one_class(
    kind: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("f.npz", features=np.eye(3), labels=np.zeros(3, int))
    assert papi_exit_code("train", "--data", "f.npz", "--candidates.kind", *kind, "--out", "run") == 2
    assert "f has only one class" in capsys.readouterr().err
    assert os.listdir() == ["f.npz"]
