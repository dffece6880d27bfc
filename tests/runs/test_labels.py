import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.runs.labels import candidate_shares, resolve

CANDIDATES = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]], bool)
CONFIDENCE = np.array([[0.2, 0.8, 0.0], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])


def test_by_hand() -> None:
    found = resolve(CANDIDATES, CONFIDENCE)
    assert found.label.tolist() == [1, 0, 1, 0]
    assert found.second.tolist() == [0, 1, -1, 2]
    np.testing.assert_allclose(found.confidence, [0.8, 0.4, 1.0, 0.5])
    np.testing.assert_allclose(found.margin, [0.6, 0.1, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.entropy[[2, 3]], [0, np.log(2)])
    assert found.rank.tolist() == [3, 1, 4, 2]  # least sure first, a single candidate last


def test_a_second_opinion_counts_for_the_rank_alone() -> None:
    """Means of confidence and opinion are 0.45, 0.6, 0.5 and 0.625; the third has one candidate only."""
    opinion = np.array([0.1, 0.8, 0.0, 0.75])
    found, alone = resolve(CANDIDATES, CONFIDENCE, opinion), resolve(CANDIDATES, CONFIDENCE)
    assert found.rank.tolist() == [1, 2, 4, 3]
    for name in ("label", "confidence", "margin", "entropy", "second"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))


def test_confidence_outside_the_candidates_does_not_count() -> None:
    shares = candidate_shares(CANDIDATES[:1], np.array([[0.1, 0.1, 0.8]]))
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0]])


def test_a_set_that_seems_to_lack_the_truth() -> None:
    """The label is the best candidate all the same; the one outside is named, and the image is looked at first."""
    confidence = CONFIDENCE.copy()
    confidence[0], confidence[2] = [0.1, 0.4, 0.5], [0.7, 0.3, 0.0]
    found = resolve(CANDIDATES, confidence)
    assert found.label.tolist() == [1, 0, 1, 0]
    assert found.outside.tolist() == [2, -1, 0, -1]
    assert found.rank.tolist() == [1, 3, 2, 4]
    assert (resolve(CANDIDATES, CONFIDENCE).outside == -1).all()


def test_a_row_that_says_nothing_is_uniform() -> None:
    confidence = np.array([[0.0, 0.0, 1.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(candidate_shares(CANDIDATES[:2], confidence), [[0.5, 0.5, 0], [1 / 3] * 3])


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\(4, 3\) and confidence \(4, 2\)"):
        resolve(CANDIDATES, CONFIDENCE[:, :2])


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 6))
def test_what_always_holds(seed: int, images: int, classes: int) -> None:
    random = np.random.default_rng(seed)
    candidates = random.random((images, classes)) < 0.5
    candidates[np.arange(images), random.integers(0, classes, images)] = True
    confidence = random.random((images, classes)).round(1)  # rounded, so that ties occur
    found = resolve(candidates, confidence)
    rows = np.arange(images)
    assert candidates[rows, found.label].all()
    several = candidates.sum(1) > 1
    assert (found.second[~several] == -1).all()
    assert candidates[rows[several], found.second[several]].all()
    assert (found.second != found.label).all()
    assert sorted(found.rank) == list(range(1, images + 1))
    assert (found.margin >= -1e-12).all()
    shares = candidate_shares(candidates, confidence)
    np.testing.assert_allclose(shares.sum(1), 1)
    assert not shares[~candidates].any()
