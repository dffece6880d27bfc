"""Views of feature vectors."""

import numpy as np
import pytest
import torch

from papi.data.views.features import (
    STRONG_DROPOUT,
    STRONGER,
    WEAK_NOISE,
    FeatureViews,
    Standardise,
    noise_for,
    normaliser,
)
from papi.data.views.images import Normalise

MEAN, STD = (5.0, -2.0), (10.0, 0.1)
FEATURES = torch.tensor(MEAN).repeat(4000, 1) + torch.tensor(STD)


def view(name: str) -> torch.Tensor:
    return FeatureViews(MEAN, STD)(name, FEATURES, np.random.default_rng(0))


def test_plain_is_untouched() -> None:
    assert view("plain") is FEATURES


def test_weak_noise_follows_the_spread_of_each_column() -> None:
    noise = (view("weak") - FEATURES).std(0)
    assert noise.tolist() == pytest.approx([WEAK_NOISE * s for s in STD], rel=0.06)


def test_the_more_rows_a_column_has_the_less_noise() -> None:
    assert noise_for(rows=10, columns=3) == noise_for(rows=90, columns=3) == WEAK_NOISE
    assert noise_for(rows=360, columns=3) == pytest.approx(WEAK_NOISE / 2)


def test_strong_views_leave_values_out() -> None:
    strong = view("strong")
    dropped = strong == torch.tensor(MEAN)
    assert dropped.float().mean().item() == pytest.approx(STRONG_DROPOUT, abs=0.02)
    noise = (strong - FEATURES)[~dropped[:, 0], 0].std()
    assert noise.item() == pytest.approx(STRONGER * WEAK_NOISE * STD[0], rel=0.06)


def test_standardise() -> None:
    normalise = normaliser((2,), MEAN, STD, torch.device("cpu"))
    assert isinstance(normalise, Standardise)
    assert normalise(FEATURES).mean().item() == pytest.approx(1, abs=1e-5)
    assert type(normaliser((1, 8, 8), (0.5,), (0.5,), torch.device("cpu"))) is Normalise
