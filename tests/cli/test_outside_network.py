"""Commands that load a model run code from outside the package only if a person names it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from command import papi_exit_code
from toy_data import make_toy_dataset

Out = pytest.CaptureFixture[str]
NAME = "network_of_a_person"
CODE = """
import math
from torch import nn

def make(shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 16), nn.ReLU())
"""
TRAIN = ("--epochs", 1, "--batch-size", 48, "--threads", 1, "--device", "cpu", "--method", "proden")


@pytest.fixture
def run(toy_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> Path:
    """A finished run with that network, whose code is on the path but not imported."""
    (tmp_path / f"{NAME}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    options = ("--data", toy_npz, "--network", f"{NAME}:make", "--out", tmp_path / "run", *TRAIN)
    assert papi_exit_code("train", *options) == 0
    monkeypatch.delitem(sys.modules, NAME)
    capsys.readouterr()
    return tmp_path / "run"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    np.save(tmp_path / "images.npy", make_toy_dataset().samples)
    return tmp_path / "images.npy"


def commands(run: Path, images: Path) -> dict[str, tuple[object, ...]]:
    return {
        "predict": ("predict", run, images),
        "evaluate": ("evaluate", run),
        "export": ("export", run, "--format", "torchscript"),
    }


@pytest.mark.parametrize("command", ["predict", "evaluate", "export"])
def test_it_is_refused_unless_named(command: str, run: Path, images: Path, capsys: Out) -> None:
    words = commands(run, images)[command]
    assert papi_exit_code(*words) == 2
    said = capsys.readouterr().err
    assert f"--network {NAME}:make" in said
    assert said.count("\n") == 1
    assert NAME not in sys.modules
    assert papi_exit_code(*words, "--network", f"{NAME}:make") == 0


def test_doctor_needs_no_code(run: Path, capsys: Out) -> None:
    assert papi_exit_code("doctor", run) == 0
    assert NAME not in sys.modules


def test_labels_need_no_code_unless_training_goes_on(run: Path, tmp_path: Path, capsys: Out) -> None:
    assert papi_exit_code("labels", run) == 0
    (tmp_path / "decisions.csv").write_text("index,label\n0,bar 0\n")
    assert papi_exit_code("labels", run, "--fix", tmp_path / "decisions.csv") == 2
    assert f"{NAME}:make" in capsys.readouterr().err
    assert NAME not in sys.modules
    assert papi_exit_code("labels", run, "--fix", tmp_path / "decisions.csv", "--network", f"{NAME}:make") == 0
