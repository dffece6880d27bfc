"""`papi check`: what it says of good data, and that it collects all problems."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import published_files as published
from command import papi_exit_code

Say = Callable[..., tuple[int, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: object) -> tuple[int, str]:
        code = papi_exit_code("check", *arguments)
        return code, " ".join(capsys.readouterr().out.split())

    return run


def test_good_data(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path / "images", [f"{k}.png" for k in range(6)])
    rows = "".join(f"{k}.png,{'cat|dog' if k < 4 else 'bird|dog'},dog\n" for k in range(5))
    (tmp_path / "labels.csv").write_text("file_name,candidates,label\n" + rows)
    code, said = say(str(tmp_path / "images"), "--candidates.file", str(tmp_path / "labels.csv"))
    assert code == 0
    assert "images: 5 images of 3 x 16 x 16 for training, 3 classes, with true labels" in said
    assert "1 images in" in said
    assert "2.00 candidate labels per sample; 0.0% have only one, 0.0% have all" in said
    assert "100.00% of the candidate sets" in said
    assert "cat │ dog │ 4 sets" in said
    assert "No problems found." in said


def test_all_problems_at_once(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path, ["a.png", "b.png", "c.png"])
    (tmp_path / "b.png").write_bytes(b"text")
    (tmp_path / "metadata.csv").write_text(
        "file_name,candidates,label\na.png,cat|dog,\nb.png,cat,\nx.png,dog,\nc.png,cat|cat,\nd.png,,\n"
    )
    code, said = say(str(tmp_path))
    assert code == 2
    for problem in (
        "line 4 names 'x.png'",
        "line 5 lists the candidate 'cat' twice",
        "line 6: the candidate set is empty",
        "b.png is",
    ):
        assert problem in said
    assert "4 problems found." in said


def test_images_whose_rows_have_problems_do_have_rows(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path / "images", [f"{k}.png" for k in range(5)])
    head = "file_name,candidates,label\n0.png,cat|dog,\n1.png,cat,\n"
    arguments = (str(tmp_path / "images"), "--candidates.file", str(tmp_path / "labels.csv"))
    for rows, left_out in (
        ("", "3 images in"),
        ("2.png,cat|cat,\n3.png,cat,dgo\n", "1 images in"),
        ("2.png,cat|cat,\n3.png,,\n4.png,dog,dgo\n", None),
        ("2.png,cat\n", None),  # nobody knows which file this row is about
    ):
        (tmp_path / "labels.csv").write_text(head + rows)
        code, said = say(*arguments)
        assert code == (2 if rows else 0)
        assert "have no row in" in said if left_out else "have no row in" not in said
        assert (left_out or "") in said


def test_rows_with_problems_in_each_split(tmp_path: Path, say: Say) -> None:
    for split in ("train", "test"):
        published.write_images(tmp_path / split, ["0.png", "1.png", "2.png"])
        text = "file_name,candidates,label\n0.png,cat|dog,cat\n1.png,dog,dgo\n"
        (tmp_path / split / "metadata.csv").write_text(text)
    code, said = say(str(tmp_path))
    assert code == 2
    assert "2 images in" in said


@pytest.mark.skipif(sys.platform != "linux", reason="the file system takes no such name")
def test_an_image_that_no_table_can_name(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path, ["0.png", "1.png", os.fsdecode(b"bad\xff.png")])
    (tmp_path / "metadata.csv").write_text("file_name,candidates\n0.png,cat|dog\n1.png,cat\n")
    code, said = say(str(tmp_path))
    assert code == 0
    assert "1 images in" in said
    assert r"bad\xff.png has a name that is not UTF-8: rename it." in said


def test_numbers_too_large_are_found_without_a_warning(tmp_path: Path, say: Say) -> None:
    (tmp_path / "f.csv").write_text("x,y,candidates\n1,2,a|b\n1e300,3,a\n4,inf,b\n5,6,b\n")
    code, said = say(str(tmp_path / "f.csv"))
    assert code == 2
    assert "line 3 has '1e300' in the column 'x': features must be finite" in said
    assert "2 problems found" in said
    np.savez(tmp_path / "f.npz", features=np.array([[1, 2], [1e300, 3], [3, np.inf]]), candidates=np.eye(3))
    code, said = say(str(tmp_path / "f.npz"))
    assert "row 2 has 1e+300 in feature 1" in said
    assert "2 problems found" in said


def test_a_known_dataset_and_a_feature_table(tmp_path: Path, say: Say) -> None:
    code, said = say("digits")
    assert code == 0
    assert "There are no candidate labels" in said
    np.savez(tmp_path / "f.npz", features=np.eye(4), candidates=np.eye(4))
    code, said = say(str(tmp_path / "f.npz"))
    assert code == 0
    assert "4 features of 4 for training" in said


def test_names_cannot_control_the_terminal(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path, ["a.png"])
    (tmp_path / "metadata.csv").write_text("file_name,candidates\na.png,\x1b[31mred|dog\n")
    _, said = say(str(tmp_path))
    assert "\x1b" not in said
