"""Views of feature vectors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from papi.data.views.features import (
    STRONG_DROPOUT,
    STRONGER,
    WEAK_NOISE,
    CachedViews,
    FeatureViews,
    NormaliseFeatures,
    noise_for,
)
from papi.randomness import draws

MEAN, STD = (5.0, -2.0), (10.0, 0.1)
FEATURES = torch.tensor(MEAN).repeat(4000, 1) + torch.tensor(STD)


def view(name: str) -> torch.Tensor:
    return FeatureViews(MEAN, STD)(name, FEATURES, np.random.default_rng(0))


def test_plain_is_untouched() -> None:
    assert view("plain") is FEATURES


def test_weak_noise_follows_the_spread_of_each_column() -> None:
    noise = (view("weak") - FEATURES).std(0)
    assert noise.tolist() == pytest.approx([WEAK_NOISE * s for s in STD], rel=0.06)


def test_noise_has_no_bias() -> None:
    for name in ("weak", "strong"):
        shift = (view(name) - FEATURES)[view(name)[:, 0] != MEAN[0], 0].mean()
        assert abs(shift.item()) < 4 * STRONGER * WEAK_NOISE * STD[0] / 3000**0.5


@given(st.integers(1, 10**6), st.integers(1, 2000))
def test_noise_never_exceeds_that_of_a_small_table(rows: int, columns: int) -> None:
    assert 0 < noise_for(rows, columns) <= WEAK_NOISE
    assert noise_for(4 * rows, columns) >= noise_for(rows, columns) / 2 - 1e-12


def test_the_more_rows_a_column_has_the_less_noise() -> None:
    assert noise_for(rows=10, columns=3) == noise_for(rows=90, columns=3) == WEAK_NOISE
    assert noise_for(rows=360, columns=3) == pytest.approx(WEAK_NOISE / 2)


def test_without_noise_a_weak_view_is_the_sample() -> None:
    made = FeatureViews(MEAN, STD, noise=0)("weak", FEATURES, np.random.default_rng(0))
    assert torch.equal(made, FEATURES)


def test_strong_views_leave_values_out() -> None:
    strong = view("strong")
    dropped = strong == torch.tensor(MEAN)
    assert dropped.float().mean().item() == pytest.approx(STRONG_DROPOUT, abs=0.02)
    noise = (strong - FEATURES)[~dropped[:, 0], 0].std()
    assert noise.item() == pytest.approx(STRONGER * WEAK_NOISE * STD[0], rel=0.06)


def test_values_are_left_out_one_by_one() -> None:
    dropped = view("strong") == torch.tensor(MEAN)
    both = dropped.all(1).float().mean().item()
    assert both == pytest.approx(STRONG_DROPOUT**2, abs=0.015)  # columns do not depend on each other


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=2), st.floats(0.125, 8, width=32))
def test_normalised_features_are_in_units_of_the_spread(row: list[float], spread: float) -> None:
    normalise = NormaliseFeatures(MEAN, (spread, spread), torch.device("cpu"))
    expected = [(value - mean) / spread for value, mean in zip(row, MEAN, strict=True)]
    assert normalise(torch.tensor([row]))[0].tolist() == pytest.approx(expected, rel=1e-5, abs=1e-3)


def test_standardise() -> None:
    normalise = NormaliseFeatures(MEAN, STD, torch.device("cpu"))
    assert normalise(FEATURES).mean().item() == pytest.approx(1, abs=1e-5)
    assert normalise(FEATURES[:0]).shape == (0, 2)


def test_one_cached_view_of_each_kind_is_drawn() -> None:
    table = torch.arange(40 * 7 * 2).view(40, 7, 2).half()
    views = CachedViews(3, (0.0,) * 2)
    assert torch.equal(views("plain", table, draws(0, "test")), table[:, 0])
    for name, kinds in (("weak", [1, 2, 3]), ("strong", [4, 5, 6])):
        made = views(name, table, draws(0, "test"))
        chosen = ((made[:, 0] - table[:, 0, 0]) / 2).int().tolist()
        assert sorted(set(chosen)) == kinds
        assert torch.equal(made, table[torch.arange(40), torch.tensor(chosen)])


def test_of_embeddings_the_plain_view_is_evaluated() -> None:
    table = torch.randn(6, 5, 2).half()
    made = NormaliseFeatures(MEAN, STD, torch.device("cpu"))(table)
    assert made.dtype == torch.float32
    assert torch.equal(made, (table[:, 0].float() - torch.tensor(MEAN)) / torch.tensor(STD))


def test_embeddings_without_views_of_their_own() -> None:
    table = torch.randn(4000, 1, 2, dtype=torch.float16) + 9
    views = CachedViews(0, MEAN)
    for name in ("plain", "weak"):
        assert torch.equal(views(name, table, draws(0, "test")), table[:, 0])
    strong = views("strong", table, draws(0, "test"))
    lost = strong == torch.tensor(MEAN, dtype=strong.dtype)
    assert torch.equal(strong[~lost], table[:, 0][~lost])
    assert lost.float().mean().item() == pytest.approx(STRONG_DROPOUT, abs=0.02)
