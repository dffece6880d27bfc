"""Averaged weights in whole runs: measured, kept, and continued."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import papi
from papi import train as run
from papi.config import OptimConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.methods import METHODS
from papi.runs.folder import RunFolder
from papi.training import engine


def config(method: str = "proden", average: float = 0.3) -> RunConfig:
    plain = RunConfig(data="toy", method=method, epochs=3, batch_size=20, device="cpu", threads=1)
    return replace(plain, optim=OptimConfig(average=average))


def train(data: Dataset, asked: RunConfig, folder: Path | None = None, stop_at: tuple[int, int] | None = None) -> Any:
    """A whole run or a part of it; its last event."""
    assert data.labels is not None
    sets = generators.uniform(data.labels, len(data.class_names), 0.4, seed=0)
    stop: list[Any] = []
    target = None if folder is None else RunFolder(folder)
    for event in run.fit(data, sets, run.settings_for(asked, data), target, stop.__len__):
        if isinstance(event, engine.Stepped) and (event.progress.epoch, event.progress.step) == stop_at:
            stop.append(event)
    return event


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_as_without_it_and_keeps_the_average(method: str, toy_dataset: Dataset) -> None:
    with_it, without = train(toy_dataset, config(method)), train(toy_dataset, config(method, 0.0))
    mine, other = with_it.trained.method, without.trained.method
    for name, value in other.network.state_dict().items():
        assert torch.equal(mine.network.state_dict()[name], value)
    assert not torch.equal(mine.result.classifier.weight, mine.network.classifier.weight)
    assert other.result is other.network
    assert not [name for name in other.state_dict() if name.startswith("averaged")]


def test_what_is_measured_is_what_is_kept(toy_dataset: Dataset, tmp_path: Path) -> None:
    finished = train(toy_dataset, config(), tmp_path / "run")
    assert toy_dataset.test_samples is not None
    said = papi.load(tmp_path / "run").predict_proba(toy_dataset.test_samples)
    np.testing.assert_allclose(said, finished.trained.arrays.test_probabilities, atol=1e-6)
    assert (said.argmax(1) == toy_dataset.test_labels).mean() == finished.summary.test_accuracy


@pytest.mark.parametrize("place", [(1, 1), (1, 4)])
def test_stopped_and_continued_equals_uninterrupted(
    place: tuple[int, int], toy_dataset: Dataset, tmp_path: Path
) -> None:
    whole = train(toy_dataset, config("papi"))
    assert isinstance(train(toy_dataset, config("papi"), tmp_path / "run", place), run.Stopped)
    parts = train(toy_dataset, config("papi"), tmp_path / "run")
    mine, other = whole.trained.method.state_dict(), parts.trained.method.state_dict()
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    assert any(name.startswith("averaged") for name in mine)
