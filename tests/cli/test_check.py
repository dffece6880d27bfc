"""`papi check`: what it says of good data, and that it collects all problems."""

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
    assert "images: 5 images of 3 x 16 x 16 for training, 3 classes, true labels given" in said
    assert "1 images in" in said
    assert "2.00 candidate labels a sample; 0.0% have one, 0.0% have all" in said
    assert "100.00% of the sets hold the true label" in said
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
        "line 6: its candidate",
        "b.png is",
    ):
        assert problem in said
    assert "4 problems found." in said


def test_a_known_dataset_and_a_feature_table(tmp_path: Path, say: Say) -> None:
    code, said = say("digits")
    assert code == 0
    assert "There are no candidate sets" in said
    np.savez(tmp_path / "f.npz", features=np.eye(4), candidates=np.eye(4))
    code, said = say(str(tmp_path / "f.npz"))
    assert code == 0
    assert "4 features of 4 for training" in said


def test_names_cannot_control_the_terminal(tmp_path: Path, say: Say) -> None:
    published.write_images(tmp_path, ["a.png"])
    (tmp_path / "metadata.csv").write_text("file_name,candidates\na.png,\x1b[31mred|dog\n")
    _, said = say(str(tmp_path))
    assert "\x1b" not in said
