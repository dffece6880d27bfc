"""Arrays are shown only if they fit the samples of their run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from papi.report.fitting import Kept, fit
from papi.runs.schema import Arrays

N, M, K, D, E = 6, 5, 3, 2, 4
CANDIDATES = np.ones((N, K), bool)


def whole() -> Arrays:
    return Arrays(
        confidence=np.full((N, K), 1 / K, np.float32),
        second_opinion=np.full(N, 0.5, np.float32),
        test_probabilities=np.full((M, K), 1 / K, np.float32),
        embedding=np.ones((E, D), np.float32),
        embedding_index=np.arange(E),
        prototypes=np.ones((K, D), np.float32),
    )


def left_out(kept: Kept) -> set[str]:
    """The names of what is missing, as they are in `Arrays`."""
    missing = {name for name in ("confidence", "second_opinion", "test_probabilities") if getattr(kept, name) is None}
    if kept.points is None:
        return missing | {"embedding"}
    return missing if len(kept.points.prototypes) else missing | {"prototypes"}


def test_whole_arrays_fit() -> None:
    kept, problems = fit(whole(), CANDIDATES, K, M)
    assert problems == []
    assert left_out(kept) == set()
    assert kept.points is not None
    assert np.array_equal(kept.points.index, np.arange(E))


def test_the_number_of_test_samples_may_be_unknown() -> None:
    kept, problems = fit(whole(), CANDIDATES, K, None)
    assert (problems, left_out(kept)) == ([], set())


def test_without_candidate_sets_the_confidence_means_nothing() -> None:
    kept, problems = fit(whole(), None, K, M)
    assert (problems, left_out(kept)) == ([], {"confidence", "second_opinion"})


def test_a_method_without_prototypes_and_data_without_tests() -> None:
    kept, problems = fit(replace(whole(), prototypes=None), CANDIDATES, K, M)
    assert (problems, left_out(kept)) == ([], {"prototypes"})
    kept, problems = fit(Arrays(confidence=whole().confidence), CANDIDATES, K, None)
    assert (problems, left_out(kept)) == ([], {"second_opinion", "test_probabilities", "embedding"})


@pytest.mark.parametrize(
    ("name", "wrong", "lost"),
    [
        ("confidence", np.ones((N - 1, K)), {"confidence", "second_opinion"}),
        ("confidence", np.ones((N, K + 1)), {"confidence", "second_opinion"}),
        ("second_opinion", np.ones(N + 1), {"second_opinion"}),
        ("second_opinion", np.ones((N, K)), {"second_opinion"}),
        ("second_opinion", np.array(["high"] * N), {"second_opinion"}),
        ("test_probabilities", np.ones((M - 1, K)), {"test_probabilities", "embedding"}),
        ("test_probabilities", np.ones((M, K - 1)), {"test_probabilities", "embedding"}),
        ("test_probabilities", np.ones(M), {"test_probabilities", "embedding"}),
        ("test_probabilities", np.full((M, K), np.nan), {"test_probabilities", "embedding"}),
        ("test_probabilities", np.full((M, K), -0.5), {"test_probabilities", "embedding"}),
        ("test_probabilities", np.ones((M, K), int), {"test_probabilities", "embedding"}),
        ("embedding", np.ones((E + 1, D)), {"embedding"}),
        ("embedding", np.ones(E), {"embedding"}),
        ("embedding", np.full((E, D), np.inf), {"embedding"}),
        ("embedding_index", np.full(E, M), {"embedding"}),
        ("embedding_index", np.full(E, -1), {"embedding"}),
        ("embedding_index", np.linspace(0, 1, E), {"embedding"}),
        ("prototypes", np.ones((K, D + 1)), {"prototypes"}),
        ("prototypes", np.ones((K - 1, D)), {"prototypes"}),
        ("prototypes", np.full((K, D), np.nan), {"prototypes"}),
    ],
)
def test_what_does_not_fit_is_left_out_and_said(name: str, wrong: np.ndarray, lost: set[str]) -> None:
    kept, problems = fit(replace(whole(), **{name: wrong}), CANDIDATES, K, M)
    assert left_out(kept) == lost
    assert len(problems) == 1
    assert "arrays.npz" in problems[0]


ANY_ARRAY = arrays_of.arrays(
    st.sampled_from([np.float32, np.int64, np.bool_, "U3"]),
    arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
)
TABLE = arrays_of.arrays(np.float32, arrays_of.array_shapes(min_dims=2, max_dims=2, max_side=6))


@given(
    confidence=TABLE,
    others=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("second_opinion", "test_probabilities", "embedding", "embedding_index", "prototypes"), ANY_ARRAY
        ),
    ),
    tests=st.none() | st.integers(1, 6),
)
def test_any_arrays_at_all(confidence: np.ndarray, others: dict[str, np.ndarray], tests: int | None) -> None:
    """Nothing fails, and what is kept can be shown together."""
    kept, _ = fit(Arrays(confidence=confidence, **others), CANDIDATES, K, tests)
    if kept.confidence is not None:
        assert kept.confidence.shape == CANDIDATES.shape
    if kept.second_opinion is not None:
        assert kept.second_opinion.shape == (N,)
    if kept.test_probabilities is not None:
        assert kept.test_probabilities.shape[1] == K
        assert tests in (None, len(kept.test_probabilities))
    if kept.points is not None:
        assert kept.test_probabilities is not None
        assert len(kept.test_probabilities[kept.points.index]) == len(kept.points.vectors)
        assert kept.points.prototypes.shape[1] == kept.points.vectors.shape[1]
