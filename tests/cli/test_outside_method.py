"""A method from outside the package runs if a person names it. A file that names one gets nothing imported."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from command import papi_exit_code
from papi.experiments.results import read_run
from toy_data import make_toy_dataset

Out = pytest.CaptureFixture[str]
NAME = "method_of_a_person"
CODE = """
from papi.methods.proden import PRODEN

class Mine(PRODEN):
    '''Another name for the same.'''
"""
OPTIONS = ("--epochs", 1, "--batch-size", 48, "--threads", 1, "--device", "cpu", "--method", f"{NAME}:Mine")


@pytest.fixture
def run(toy_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> Path:
    """A finished run with that method, whose code is on the path but not imported."""
    (tmp_path / f"{NAME}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.argv", ["papi", "train"])  # what the run takes down
    assert papi_exit_code("train", "--data", toy_npz, "--out", tmp_path / "run", *OPTIONS) == 0
    monkeypatch.delitem(sys.modules, NAME)
    (tmp_path / "decisions.csv").write_text("index,label\n0,bar 0\n")
    np.save(tmp_path / "images.npy", make_toy_dataset().samples)
    capsys.readouterr()
    return tmp_path / "run"


def test_training_on_needs_it_named(run: Path, capsys: Out) -> None:
    words = ("labels", run, "--fix", run.parent / "decisions.csv", "--epochs", 1)
    before = sorted(run.parent.iterdir())
    assert papi_exit_code(*words) == 2
    said = capsys.readouterr().err
    assert f"--method {NAME}:Mine" in said
    assert said.count("\n") == 1
    assert NAME not in sys.modules
    assert sorted(run.parent.iterdir()) == before
    assert papi_exit_code(*words, "--method", f"{NAME}:Mine") == 0
    fixed = json.loads((run.parent / "run-fixed" / "config.json").read_text())
    assert fixed["config"]["method"] == f"{NAME}:Mine"


def test_a_method_is_for_training_on(run: Path, capsys: Out) -> None:
    assert papi_exit_code("labels", run, "--method", f"{NAME}:Mine") == 2
    assert "--fix" in capsys.readouterr().err


def test_other_commands_need_no_code(run: Path) -> None:
    for words in (
        ("doctor", run),
        ("watch", run),
        ("compare", run),
        ("labels", run),
        ("evaluate", run),
        ("predict", run, run.parent / "images.npy", "--out", run.parent / "predicted.csv"),
        ("report", run),
    ):
        assert papi_exit_code(*words) == 0, words
    assert NAME not in sys.modules


def test_grids_pass_it_over(run: Path, capsys: Out) -> None:
    """A folder among the results of a grid may come from anybody."""
    assert papi_exit_code("bench", "--list", "--scale", "cpu", "--out", run.parent) == 0
    assert NAME not in sys.modules
    assert read_run(run) is None
    __import__(NAME)
    found = read_run(run)
    assert found is not None
    assert found.config.method == f"{NAME}:Mine"


@pytest.mark.parametrize("method", ["os:system", ":", "..:x", "papi.cli:main", "subprocess:Popen", "no_such_module:X"])
def test_any_name_in_a_record(method: str, run: Path, capsys: Out) -> None:
    record = json.loads((run / "config.json").read_text())
    record["config"]["method"] = method
    (run / "config.json").write_text(json.dumps(record))
    assert papi_exit_code("labels", run, "--fix", run.parent / "decisions.csv") == 2
    assert "--method" in capsys.readouterr().err
    assert read_run(run) is None
