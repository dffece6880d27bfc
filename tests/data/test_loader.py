"""Batches: every sample once an epoch, each with its own views and candidates, the same wherever a run resumes."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from papi.data.dataset import Dataset
from papi.data.images.photos import Photos
from papi.data.loader import Loader, batch_bounds, is_mapped
from papi.data.views.choose import normaliser_of, views_of
from papi.files.npz import map_npy
from papi.networks.preparation import Preparation
from papi.randomness import draws

NUMBERS = Dataset(
    "numbers", ("a", "b"), np.arange(90, dtype=np.float32).reshape(45, 2), mean=(40.0, 41.0), std=(10.0, 20.0)
)


def make_loader(
    data: Dataset,
    batch_size: int = 20,
    names: tuple[str, ...] = ("weak", "strong"),
    seed: int = 0,
    drop_last: bool = False,
) -> Loader:
    count = len(data.samples)
    candidates = torch.arange(count)[:, None] % torch.tensor([1, 2, 3, 5]) == 0
    normalise = normaliser_of(data, torch.device("cpu"))
    samples = torch.from_numpy(data.samples)
    return Loader(
        samples, candidates, views_of(data), normalise, names, batch_size=batch_size, seed=seed, drop_last=drop_last
    )


EMBEDDINGS = Dataset(
    "embeddings", ("a", "b"), np.arange(450, dtype=np.float16).reshape(45, 5, 2), mean=(40.0, 41.0), std=(10.0, 20.0)
)


PHOTOS = Dataset(
    "photos",
    ("a", "b"),
    np.arange(45)[::-1].copy(),
    mean=(0.5, 0.5, 0.5),
    std=(0.2, 0.2, 0.2),
    photos=Photos([Image.new("RGB", (9 + k % 3, 8), (k, 2 * k, 3 * k)) for k in range(45)], Preparation(size=7)),
)


@pytest.fixture(params=["images", "features", "embeddings", "photos"])
def data(request: pytest.FixtureRequest, toy_dataset: Dataset) -> Dataset:
    return {"images": toy_dataset, "features": NUMBERS, "embeddings": EMBEDDINGS, "photos": PHOTOS}[request.param]


@given(count=st.integers(1, 300), size=st.integers(2, 70), drop=st.booleans())
def test_bounds_cover_the_set(count: int, size: int, drop: bool) -> None:
    bounds = batch_bounds(count, size, drop)
    covered = [i for start, end in bounds for i in range(start, end)]
    assert covered == list(range(len(covered)))
    sizes = [end - start for start, end in bounds]
    if drop and count >= size:
        assert sizes == [size] * (count // size)
    else:
        assert len(covered) == count
        assert all(each >= 2 for each in sizes) or count == 1
        assert all(each in (size, size + 1) for each in sizes[:-1])


def test_no_samples_make_no_batches() -> None:
    assert batch_bounds(0, 5, drop_last=False) == []


def test_an_epoch_visits_every_sample_once(data: Dataset) -> None:
    loader = make_loader(data)
    batches = list(loader.epoch(0))
    index = torch.cat([batch.index for batch in batches])
    assert torch.equal(index.sort().values, torch.arange(len(data.samples)))
    assert len(batches) == len(loader)
    assert all(len(batch.index) == 20 for batch in batches[:-1])


def test_an_incomplete_batch_can_be_left_out(data: Dataset) -> None:
    batches = list(make_loader(data, drop_last=True).epoch(0))
    assert [len(batch.index) for batch in batches] == [20] * (len(data.samples) // 20)


def test_epochs_and_seeds_shuffle_differently(data: Dataset) -> None:
    orders = [next(make_loader(data, seed=s).epoch(e)).index.tolist() for s in (0, 1) for e in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("first", [1, 2])
def test_an_epoch_can_begin_anywhere(data: Dataset, first: int) -> None:
    whole = list(make_loader(data).epoch(2))
    part = list(make_loader(data).epoch(2, first))
    assert len(part) == len(whole) - first
    for a, b in zip(part, whole[first:], strict=True):
        assert torch.equal(a.index, b.index)
        assert torch.equal(a.candidates, b.candidates)
        assert all(torch.equal(x, y) for x, y in zip(a.views, b.views, strict=True))


def test_views_of_the_same_kind_differ(data: Dataset) -> None:
    batch = next(make_loader(data, names=("strong", "strong")).epoch(0))
    assert not torch.equal(*batch.views)


def test_views_and_candidates_belong_to_the_samples(data: Dataset) -> None:
    loader = make_loader(data, names=("weak", "plain"))
    candidates = torch.arange(len(data.samples))[:, None] % torch.tensor([1, 2, 3, 5]) == 0
    for step, batch in enumerate(loader.epoch(3)):
        samples = torch.from_numpy(data.samples)[batch.index]
        weak = views_of(data)("weak", samples, draws(0, "view 0", 3, step))
        assert torch.equal(batch.views[0], loader.normalise(weak))
        assert torch.equal(batch.views[1], loader.normalise(samples))
        assert torch.equal(batch.candidates, candidates[batch.index])


def test_plain_pass_is_in_order(data: Dataset) -> None:
    loader = make_loader(data)
    batches = list(loader.plain())
    assert torch.equal(torch.cat([batch.index for batch in batches]), torch.arange(len(data.samples)))
    seen = torch.cat([batch.views[0] for batch in batches])
    assert torch.equal(seen, loader.normalise(torch.from_numpy(data.samples)))


def test_a_plain_pass_comes_in_parts() -> None:
    count = 2300
    many = Dataset("many", ("a", "b"), np.zeros((count, 2), np.float32), (0.0, 0.0), (1.0, 1.0))
    batches = list(make_loader(many).plain())
    assert len(batches) > 1
    assert torch.equal(torch.cat([batch.index for batch in batches]), torch.arange(count))


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("papi-ahead")]


class TestAhead:
    """Samples mapped from a file are read by a thread, which changes nothing and is gone afterwards."""

    @pytest.fixture
    def mapped(self, toy_dataset: Dataset, tmp_path: Path) -> Dataset:
        np.save(tmp_path / "images.npy", toy_dataset.samples)
        return replace(toy_dataset, samples=map_npy(tmp_path / "images.npy"))

    def ahead(self, data: Dataset) -> Loader:
        loader = make_loader(data)
        loader.ahead = True
        return loader

    def test_batches_are_equal(self, mapped: Dataset, toy_dataset: Dataset) -> None:
        assert is_mapped(mapped.samples[3:])
        assert not is_mapped(toy_dataset.samples)
        for first in (0, 2):
            both = zip(make_loader(toy_dataset).epoch(1, first), self.ahead(mapped).epoch(1, first), strict=True)
            for plain, ours in both:
                assert torch.equal(plain.index, ours.index)
                assert torch.equal(plain.candidates, ours.candidates)
                assert all(map(torch.equal, plain.views, ours.views))
        assert not threads()

    def test_the_thread_ends_with_the_epoch(self, mapped: Dataset) -> None:
        batches = self.ahead(mapped).epoch(0)
        next(batches)
        assert threads()
        batches.close()
        assert not threads()

    def test_an_error_reaches_the_caller(self, mapped: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
        loader = self.ahead(mapped)

        def torn(index: torch.Tensor) -> torch.Tensor:
            raise OSError("the disk is gone")

        monkeypatch.setattr(loader, "_read", torn)
        with pytest.raises(OSError, match="the disk is gone"):
            next(loader.epoch(0))
        assert not threads()
