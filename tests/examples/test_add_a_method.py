"""The example runs as its text says, and stays short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset

EXAMPLES = Path(__file__).parents[2] / "examples"
METHOD = "add_a_method:AverageLoss"


def test_it_learns_through_the_same_engine(toy_dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    assert toy_dataset.labels is not None
    sets = generators.uniform(toy_dataset.labels, 4, 0.3, seed=0)
    settings = run.settings_for(RunConfig(method=METHOD, epochs=10, batch_size=12), toy_dataset)
    *_, finished = run.fit(toy_dataset, sets, settings)
    assert isinstance(finished, run.Finished)
    assert finished.summary.test_accuracy > 0.6  # chance is 0.25


def test_its_own_loop(
    toy_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    import add_a_method

    add_a_method.main(RunConfig(method=METHOD, data=str(toy_npz), epochs=2), tmp_path / "run")
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["epoch 1", "epoch 2"]
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_from_the_command_line(toy_npz: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "papi", "train", "--method", METHOD, "--data", str(toy_npz)]
    command += ["--epochs", "1", "--threads", "1", "--out", str(tmp_path / "run")]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert METHOD in done.stdout
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_it_is_short() -> None:
    assert len((EXAMPLES / "add_a_method.py").read_text().splitlines()) < 40
