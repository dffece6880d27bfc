"""The programs of the README run."""

import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, block_with

README = (ROOT / "README.md").read_text()


def test_arrays_are_saved_trained_on_and_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that saves arrays makes the data of a run, and the one that loads a model predicts with it."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block_with(README, "np.savez", "python"), names)
    train = ["train", "--data", "mine.npz", "--epochs", "1", "--threads", "1", "--out", "runs/demo"]
    done = subprocess.run([sys.executable, "-m", "papi", *train], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    exec(block_with(README, "papi.load", "python"), names)


def test_every_method_has_a_link_to_its_page() -> None:
    from papi.methods import METHODS

    assert {name for name in METHODS if f"(docs/methods/{name}.md)" not in README} == set()


def test_every_command_is_shown() -> None:
    from papi.cli import app

    shown = {name for name in app if not name.startswith("-") and f"papi {name}" in README}
    assert {name for name in app if not name.startswith("-")} - shown <= {"bench"}, "bench has a page of its own"
