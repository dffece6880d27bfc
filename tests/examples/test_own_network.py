"""The example runs as its text says, from training to an exported file, and stays short."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import papi
from command import papi_exit_code
from papi import PartialLabelClassifier
from papi.config import RunConfig
from papi.export.formats import FORMATS, export
from papi.train import train
from papi.training.engine import EpochEnded
from toy_data import make_toy_dataset

EXAMPLES = Path(__file__).parents[2] / "examples"
NETWORK = "own_network:network"
TINY = ("--network", NETWORK, "--batch-size", 20, "--threads", 1, "--device", "cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, lasting_toy_npz: Path) -> Path:
    """A run on the toy data; nobody changes it."""
    folder = tmp_path_factory.mktemp("own network") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        assert papi_exit_code("train", "--data", lasting_toy_npz, "--out", folder, "--epochs", 8, *TINY) == 0
    return folder


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def test_it_is_short() -> None:
    assert len((EXAMPLES / "own_network.py").read_text().splitlines()) < 30


@pytest.mark.usefixtures("importable")
def test_it_learns(trained: Path) -> None:
    data = make_toy_dataset()
    assert data.test_samples is not None
    model = papi.load(trained, network=NETWORK)
    assert model.card.network == NETWORK
    answers = model.predict(data.test_samples)
    assert np.mean(answers == np.array(data.class_names)[data.test_labels]) > 0.6  # chance is 0.25
    assert model.embed(data.test_samples).shape == (len(data.test_samples), model.network.projection)


@pytest.mark.usefixtures("importable")
def test_the_same_folder_again(
    trained: Path, lasting_toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished run stays as it is; with another network the folder is refused."""
    folder = shutil.copytree(trained, tmp_path / "run")
    command = ("train", "--data", lasting_toy_npz, "--out", folder, "--epochs", 8)
    before = (folder / "model.safetensors").read_bytes()
    assert papi_exit_code(*command, *TINY) == 0
    assert (folder / "model.safetensors").read_bytes() == before
    assert papi_exit_code(*command, *TINY[2:]) == 2
    assert "network" in capsys.readouterr().err


@pytest.mark.usefixtures("importable")
def test_an_interrupted_run_goes_on(trained: Path, lasting_toy_npz: Path, tmp_path: Path) -> None:
    """It ends bit-equal to one that was never stopped, though the network is built anew."""
    config = RunConfig(data=str(lasting_toy_npz), network=NETWORK, epochs=8, batch_size=20, threads=1, device="cpu")
    ended: list[object] = []
    for event in train(config, tmp_path / "run", stop_requested=lambda: len(ended) == 3):
        if isinstance(event, EpochEnded):
            ended.append(event)
    assert len(ended) == 3
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert papi_exit_code("train", "--data", lasting_toy_npz, "--out", tmp_path / "run", "--epochs", 8, *TINY) == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


@pytest.mark.usefixtures("importable")
def test_it_is_exported(trained: Path, tmp_path: Path) -> None:
    model = papi.load(trained, network=NETWORK)
    for kind in ("pt2", "safetensors"):
        assert export(model, kind, tmp_path / f"model{FORMATS[kind].suffix}") < 1e-4


@pytest.mark.usefixtures("importable")
def test_the_commands_that_use_it(trained: Path, lasting_toy_npz: Path, tmp_path: Path) -> None:
    table, file = tmp_path / "table.csv", tmp_path / "model.torchscript.pt"
    named = ("--network", NETWORK)
    assert papi_exit_code("predict", trained, lasting_toy_npz, "--out", table, *named) == 0
    assert len(table.read_text().splitlines()) == 1 + len(make_toy_dataset().samples)
    assert papi_exit_code("evaluate", trained, *named) == 0
    assert papi_exit_code("export", trained, "--format", "torchscript", "--out", file, *named) == 0
    assert file.exists()


def test_its_file_alone_imports_nothing(trained: Path) -> None:
    code = f"""
import sys, papi
from papi.errors import UserError
try:
    papi.load({str(trained)!r})
except UserError as error:
    print(error)
sys.exit("own_network" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'papi.load(…, network="{NETWORK}")' in done.stdout


@pytest.mark.usefixtures("importable")
def test_the_estimator_takes_it() -> None:
    from own_network import network

    data = make_toy_dataset()
    classifier = PartialLabelClassifier(network=network, epochs=8, batch_size=20)
    classifier.fit(data.samples, data.labels)
    assert classifier.score(data.test_samples, data.test_labels) > 0.6


def test_without_its_folder_on_the_path(lasting_toy_npz: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "papi", "train", "--data", lasting_toy_npz, "--out", tmp_path / "run", *TINY]
    done = subprocess.run(list(map(str, words)), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "PYTHONPATH" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("importable")
def test_two_processes(lasting_toy_npz: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "papi"]
    words += ["train", "--data", lasting_toy_npz, "--out", folder, "--epochs", 2, *TINY]
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES)}
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert papi.load(folder, network=NETWORK).card.network == NETWORK
