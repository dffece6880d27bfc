"""What a summary tells besides sums and means."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from papi.training.summary import collapsed

NAMES = ("rose", "tulip", "lily", "daisy")
SETS = np.ones((2, 4), bool)


def test_prototypes_that_are_zero_or_the_same_have_collapsed() -> None:
    apart = np.eye(4, dtype=np.float32)
    assert collapsed(NAMES, SETS, apart) == ()
    assert collapsed(NAMES, SETS, None) == ()
    zero = apart * np.array([[1], [0], [1], [1]], np.float32)
    assert collapsed(NAMES, SETS, zero) == ("tulip",)
    same = apart[[0, 1, 2, 0]]
    assert collapsed(NAMES, SETS, same) == ("rose", "daisy")


def test_a_class_that_is_no_candidate_needs_no_prototype() -> None:
    sets = SETS & np.array([True, True, True, False])
    assert collapsed(NAMES, sets, np.eye(4)[[0, 1, 2, 0]] * np.array([[1], [1], [1], [0]])) == ()


@given(st.integers(2, 4), st.integers(0, 1000))
def test_against_pairs_one_by_one(dimensions: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.integers(-1, 2, (4, dimensions)).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1)
    lost = {
        name
        for number, name in enumerate(NAMES)
        if not vectors[number].any()
        or any(np.allclose(vectors[number], other) for place, other in enumerate(vectors) if place != number)
    }
    assert set(collapsed(NAMES, SETS, vectors)) == lost
