"""Packed candidate sets and confidence against the dense ones, bit for bit."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from papi import train as run
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.data.packed_rows import PackedRows
from papi.methods import packed
from papi.methods.losses import candidate_softmax
from papi.methods.packed import PackedConfidence, PackedSets, worth_packing
from papi.methods.state import DenseConfidence
from papi.runs.folder import RunFolder

SIZES = [(1, 2), (7, 5), (64, 40), (33, 300)]


def make_mask(samples: int, classes: int) -> Tensor:
    """Sets of all sizes: a single label first, a full set last."""
    random = torch.Generator().manual_seed(samples)
    mask = torch.rand(samples, classes, generator=random) < torch.linspace(0, 0.9, samples)[:, None]
    mask |= torch.nn.functional.one_hot(torch.arange(samples) % classes, classes).bool()
    mask[-1] |= samples > 1
    return mask


@pytest.mark.parametrize("places", [1, 500, packed._PLACES])
@pytest.mark.parametrize("shape", SIZES)
def test_rows_of_the_mask(shape: tuple[int, int], places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_PLACES", places)
    mask = make_mask(*shape)
    sets = packed.packed(mask)
    index = torch.randperm(shape[0])[:20]
    assert torch.equal(sets[index], mask[index])
    assert torch.equal(sets[2:5], mask[2:5])
    assert torch.equal(sets[:], mask)
    assert torch.equal(sets[2:2], mask[2:2])
    assert torch.equal(sets.sizes(), mask.sum(1))
    assert (sets.shape, len(sets)) == (mask.shape, len(mask))


@pytest.mark.parametrize("shape", SIZES)
def test_updates_are_bit_equal(shape: tuple[int, int]) -> None:
    mask = make_mask(*shape)
    dense, sparse = DenseConfidence(mask), PackedConfidence(packed.packed(mask))
    assert torch.equal(sparse.all_rows, dense.value)
    random = torch.Generator().manual_seed(1)
    for step in range(6):
        index = torch.randperm(len(mask), generator=random)[:16]
        guess = candidate_softmax(torch.randn(len(index), shape[1], generator=random), mask[index])
        for state in (dense, sparse):
            if step % 3 == 2:
                state.replace(index, guess)
            else:
                state.average(index, guess, 0.7)
        assert torch.equal(sparse[index], dense[index])
    assert torch.equal(sparse.all_rows, dense.value)


def test_it_is_built_from_parts() -> None:
    mask = make_mask(50, 20)
    assert torch.equal(PackedSets(torch.split(mask, 7), 20)[:], mask)


def test_many_classes_need_wider_numbers() -> None:
    mask = torch.zeros(2, 40_000, dtype=torch.bool)
    mask[0, 39_999] = mask[1, 3] = True
    sets = packed.packed(mask)
    assert sets.columns.dtype == torch.int32
    assert torch.equal(sets[:], mask)


def test_a_checkpoint_holds_confidence_and_not_the_sets() -> None:
    mask = make_mask(30, 10)
    first = PackedConfidence(packed.packed(mask))
    first.replace(torch.arange(30), candidate_softmax(torch.randn(30, 10), mask))
    saved = first.state_dict()
    assert list(saved) == ["entries"]
    second = PackedConfidence(packed.packed(mask))
    second.load_state_dict(saved)
    assert torch.equal(second.all_rows, first.all_rows)


def test_memory_at_scale() -> None:
    """A thousand classes, ten candidates: a twentieth of the dense memory at most."""
    mask = torch.rand(5_000, 1_000) < 0.01
    mask[:, 0] = True
    confidence = PackedConfidence(packed.packed(mask))
    used = sum(buffer.numel() * buffer.element_size() for buffer in confidence.buffers())
    assert used < 5_000 * 1_000 * (4 + 1) / 20


def test_only_large_and_thin_masks_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    thin = torch.zeros(100, 100, dtype=torch.bool)
    thin[:, 3] = True
    assert not worth_packing(thin)
    monkeypatch.setattr(packed, "PACKED_ABOVE", 9_999)
    assert worth_packing(thin)
    assert not worth_packing(torch.ones_like(thin))


CONFIG = RunConfig(data="toy", epochs=2, batch_size=20, device="cpu", threads=1)
PACKING = ["papi", "pico", "dpll", "proden", "rc", "cc", "valen", "dirk", "em", "neighbours", "supervised"]
# One class for each bar of the toy images and many that are never drawn, so that packing is worth its while.
CLASSES = 60


def train(data: Dataset, folder: Path, config: RunConfig, stop_after: int = 10**9) -> list[Any]:
    assert data.labels is not None
    data = replace(data, class_names=tuple(f"class {k}" for k in range(CLASSES)))
    asked = iter(range(10**9))
    mask = generators.uniform(data.labels, CLASSES, 0.05, seed=0)
    return list(
        run.fit(data, mask, run.settings_for(config, data), RunFolder(folder), lambda: next(asked) + 1 >= stop_after)
    )


@pytest.mark.parametrize("method", PACKING)
def test_runs_are_bit_equal(method: str, toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed against dense, and stopped and continued against in one go."""
    options = {
        "pico": ("queue=64", "warmup_epochs=0"),
        "valen": ("warmup_epochs=1",),
        "dirk": ("refinement_weight=1", "queue=64", "warmup_epochs=1"),
        "neighbours": ("k=5",),
    }
    config = replace(CONFIG, method=method, option=options.get(method, ()))
    train(toy_dataset, tmp_path / "dense", config)
    monkeypatch.setattr(packed, "PACKED_ABOVE", 0)
    train(toy_dataset, tmp_path / "packed", config, stop_after=2)
    trained = train(toy_dataset, tmp_path / "packed", config)[-1].trained.method
    assert isinstance(trained.candidates, PackedSets)
    dense, sparse = (RunFolder(tmp_path / name) for name in ("dense", "packed"))
    assert sparse.model_file.read_bytes() == dense.model_file.read_bytes()
    first, second = dense.read_arrays(), sparse.read_arrays()
    assert isinstance(second.confidence, PackedRows)
    for name in (each.name for each in fields(first)):
        mine, theirs = getattr(second, name), getattr(first, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(np.asarray(mine), theirs), name
    for mine, theirs in zip(sparse.read_rows(), dense.read_rows(), strict=True):
        assert (mine.loss, mine.mean_confidence) == (theirs.loss, theirs.mean_confidence)


@pytest.mark.parametrize("select", ["last", "covering-rate"])
def test_a_run_that_began_dense_goes_on_packed(
    select: str, toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions packed later: a checkpoint of theirs holds whole rows."""
    config = replace(CONFIG, select=select)
    train(toy_dataset, tmp_path / "one go", config)
    train(toy_dataset, tmp_path / "continued", config, stop_after=6)  # in the second epoch
    monkeypatch.setattr(packed, "PACKED_ABOVE", 0)
    events = train(toy_dataset, tmp_path / "continued", config)
    assert events[0].epoch == 1
    assert not events[0].problems
    assert isinstance(events[-1].trained.method.confidence, PackedConfidence)
    one_go, continued = (RunFolder(tmp_path / name) for name in ("one go", "continued"))
    assert continued.model_file.read_bytes() == one_go.model_file.read_bytes()


@pytest.mark.parametrize(("method", "option"), [("lws", ()), ("papi", ("noise_tolerance=0.1",))])
def test_mass_outside_the_sets_is_kept_and_its_memory_said(
    method: str, option: tuple[str, ...], toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "PACKED_ABOVE", 0)
    monkeypatch.setattr(packed, "TOLD_ABOVE", 0)
    events = train(toy_dataset, tmp_path, replace(CONFIG, epochs=1, method=method, option=option))
    assert isinstance(events[-1].trained.method.candidates, Tensor)
    assert events[0].problems[-1] == (
        f"{method} stores one number per sample and class with these settings and sets: 0.0 GB."
    )


def test_votes_are_where_confidence_begins() -> None:
    mask = make_mask(30, 10)
    votes = candidate_softmax(torch.randn(30, 10), mask)
    dense, sparse = DenseConfidence(mask), PackedConfidence(packed.packed(mask))
    for state in (dense, sparse):
        state.start_from(votes)
    assert torch.equal(sparse.all_rows, dense.value)
    for first, second in zip(sparse.highest(), dense.highest(), strict=True):
        assert torch.equal(first, second)
