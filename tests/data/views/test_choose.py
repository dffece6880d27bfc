"""Views and normalisation by the kind of data; processes that share a batch make its views together."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from papi.data.dataset import Dataset, ViewRecipe
from papi.data.views.base import Normalise, Views
from papi.data.views.choose import normaliser, views_of
from papi.randomness import draws, draws_of_rows

CPU = torch.device("cpu")
PHOTOS = np.random.default_rng(0).integers(0, 256, (11, 3, 16, 16), np.uint8)
RECIPES = {
    "plain": ViewRecipe(),
    "no flip": ViewRecipe(flip=False, crop_padding=2, cutout=0),
    "policy": ViewRecipe(policy="cifar10", cutout=6),
    "resized": ViewRecipe(crop_padding=0, resized_crop=12, policy="imagenet", cutout=4),
}
IMAGES = {
    name: Dataset(name, ("a", "b"), PHOTOS, (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), recipe)
    for name, recipe in RECIPES.items()
}
FEATURES = Dataset(
    "features",
    ("a", "b"),
    np.random.default_rng(1).normal(3, 2, (11, 5)).astype(np.float32),
    (3.0,) * 5,
    (2.0, 1.0, 2.0, 1.0, 2.0),
)
DATASETS = {**IMAGES, "features": FEATURES}


def samples(dataset: Dataset) -> Tensor:
    return torch.from_numpy(dataset.samples)


@pytest.mark.parametrize("view", ["weak", "strong", "plain"])
@pytest.mark.parametrize("name", DATASETS)
@given(first=st.integers(1, 10))
def test_processes_make_the_views_of_a_batch_together(name: str, view: str, first: int) -> None:
    data = DATASETS[name]
    views: Views = views_of(data)
    whole = views(view, samples(data), draws(5, "view"))
    parts = [
        views(view, samples(data)[part], draws_of_rows(draws(5, "view"), part, 11))
        for part in (slice(0, first), slice(first, 11))
    ]
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("name", DATASETS)
def test_views_keep_the_type_and_leave_the_samples(name: str) -> None:
    data = DATASETS[name]
    before = samples(data).clone()
    for view in ("weak", "strong", "plain"):
        made = views_of(data)(view, samples(data), draws(5, "view"))
        assert made.dtype == samples(data).dtype
        assert len(made) == len(data.samples)
    assert torch.equal(samples(data), before)


@pytest.mark.parametrize("name", DATASETS)
def test_the_network_gets_one_shape_whatever_the_view(name: str) -> None:
    data = DATASETS[name]
    normalise: Normalise = normaliser(data.input_shape, data.mean, data.std, CPU)
    for view in ("weak", "strong", "plain"):
        made = normalise(views_of(data)(view, samples(data), draws(5, "view")))
        assert made.shape == (11, *data.input_shape)
        assert made.dtype == torch.float32


@pytest.mark.parametrize("name", DATASETS)
def test_equal_draws_make_equal_views(name: str) -> None:
    data = DATASETS[name]
    views = views_of(data)
    first = views("strong", samples(data), draws(5, "view"))
    assert torch.equal(first, views("strong", samples(data), draws(5, "view")))
    assert not torch.equal(first, views("strong", samples(data), draws(6, "view")))


@pytest.mark.parametrize("data", [IMAGES["plain"].measured(), FEATURES.measured()])
def test_normalised_training_samples_have_mean_0_and_deviation_1(data: Dataset) -> None:
    made = normaliser(data.input_shape, data.mean, data.std, CPU)(samples(data)).transpose(0, 1).flatten(1)
    assert made.mean(1).numpy() == pytest.approx(np.zeros(len(made)), abs=1e-4)
    assert made.std(1, correction=0).numpy() == pytest.approx(np.ones(len(made)), abs=1e-4)


def test_tables_with_more_rows_get_less_noise() -> None:
    many = replace(FEATURES, samples=np.repeat(FEATURES.samples, 200, axis=0))
    shift = [
        (views_of(data)("weak", samples(data), draws(5, "view")) - samples(data)).std().item()
        for data in (FEATURES, many)
    ]
    assert shift[1] < 0.5 * shift[0]
