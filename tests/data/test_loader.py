import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from papi.data.dataset import Dataset
from papi.data.loader import Loader, batch_bounds
from papi.data.views.images import Normalise, Views


def make_loader(
    data: Dataset, batch_size: int = 20, names: tuple[str, ...] = ("weak", "strong"), seed: int = 0
) -> Loader:
    images = torch.from_numpy(data.samples)
    candidates = torch.ones(len(images), 4, dtype=torch.bool)
    normalise = Normalise(data.mean, data.std, torch.device("cpu"))
    return Loader(images, candidates, Views(data.recipe), normalise, names, batch_size=batch_size, seed=seed)


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


def test_an_epoch_visits_every_image_once(toy_dataset: Dataset) -> None:
    batches = list(make_loader(toy_dataset).epoch(0))
    index = torch.cat([batch.index for batch in batches])
    assert torch.equal(index.sort().values, torch.arange(96))
    assert [len(batch.index) for batch in batches] == [20, 20, 20, 20, 16]


def test_epochs_and_seeds_shuffle_differently(toy_dataset: Dataset) -> None:
    orders = [next(make_loader(toy_dataset, seed=s).epoch(e)).index.tolist() for s in (0, 1) for e in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("first", [1, 3])
def test_an_epoch_can_begin_anywhere(toy_dataset: Dataset, first: int) -> None:
    whole = list(make_loader(toy_dataset).epoch(2))
    part = list(make_loader(toy_dataset).epoch(2, first))
    assert len(part) == len(whole) - first
    for a, b in zip(part, whole[first:], strict=True):
        assert torch.equal(a.index, b.index)
        assert all(torch.equal(x, y) for x, y in zip(a.views, b.views, strict=True))


def test_views_of_the_same_kind_differ(toy_dataset: Dataset) -> None:
    batch = next(make_loader(toy_dataset, names=("strong", "strong")).epoch(0))
    assert not torch.equal(*batch.views)


def test_plain_pass_is_in_order(toy_dataset: Dataset) -> None:
    batches = list(make_loader(toy_dataset).plain())
    assert torch.equal(torch.cat([batch.index for batch in batches]), torch.arange(96))
