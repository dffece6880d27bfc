"""`--tune all`: the head first, then the whole of a pretrained encoder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import papi
import tiny_encoder
from papi.config import OptimConfig, RunConfig
from papi.networks.pretrained import Root, load_pretrained
from papi.runs.folder import RunFolder
from papi.train import EpochEnded, Finished, Stopped, train

CLASSES, EACH = ("blue", "green", "red"), 8


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    folder = tmp_path_factory.mktemp("data") / "photos"
    random = np.random.default_rng(3)
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for each in range(EACH):
            height, width = random.integers(20, 50, 2)
            pixels = random.integers(0, 90, (height, width, 3))
            pixels[..., 2 - number] += 150
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{each}.png")
    return RunConfig(
        data=str(folder), network=tiny_encoder.NAME, tune="all", epochs=2, batch_size=6, threads=1, device="cpu"
    )


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPI_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def trained(config: RunConfig, folder: Path, stop: Callable[[], bool] = lambda: False) -> dict[str, torch.Tensor]:
    *_, last = train(config, folder, stop)
    assert isinstance(last, Finished | Stopped)
    return load_file(RunFolder(folder).model_file) if isinstance(last, Finished) else {}


def test_it_begins_with_the_head_and_the_encoder_as_they_were(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Root, "forward", lambda _, features: features)  # only of an encoder that stays frozen
    still = replace(config, epochs=1, optim=OptimConfig(lr=0.0, encoder_lr=0.0))
    weights = trained(still, tmp_path / "still")
    trained(replace(config, tune="head", epochs=None, batch_size=None), tmp_path / "head")
    encoder = load_pretrained(tiny_encoder.NAME).encoder.state_dict()
    assert all(weights[f"encoder.{name}"].equal(value) for name, value in encoder.items())  # statistics, too
    photos = sorted(Path(config.data).rglob("*.png"))
    answers = [
        papi.load(tmp_path / name, network=tiny_encoder.NAME).predict_proba(photos) for name in ("still", "head")
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=2e-3)  # embeddings are kept as float16


def test_all_of_it_learns_and_statistics_stay(config: RunConfig, tmp_path: Path) -> None:
    weights = trained(config, tmp_path / "run")
    before = load_pretrained(tiny_encoder.NAME).encoder.state_dict()
    for name, value in before.items():
        assert weights[f"encoder.{name}"].equal(value) == ("running" in name or "num_batches" in name)


def test_stopped_and_continued_it_ends_bit_equal(config: RunConfig, tmp_path: Path) -> None:
    whole = trained(config, tmp_path / "whole")
    epochs = 0

    def stop() -> bool:
        return epochs > 0

    for event in train(config, tmp_path / "parts", stop):
        epochs += isinstance(event, EpochEnded)
    assert not RunFolder(tmp_path / "parts").summary_file.exists()
    parts = trained(config, tmp_path / "parts")
    assert parts.keys() == whole.keys()
    assert all(value.equal(whole[name]) for name, value in parts.items())


def test_a_stop_while_the_head_trains(config: RunConfig, tmp_path: Path) -> None:
    assert trained(config, tmp_path / "run", lambda: True) == {}
    assert not RunFolder(tmp_path / "run").checkpoint_file.exists()
