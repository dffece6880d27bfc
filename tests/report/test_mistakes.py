"""Mix-ups and reliability, against counts made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from papi.report.mistakes import (
    MATRIX_CLASSES,
    PAIR_IMAGES,
    PAIRS,
    Confusion,
    find_confusion,
    find_reliability,
    matrix_classes,
    pairs,
    reliability,
)
from papi.training.metrics import calibration_error
from runs_in_memory import run_of

TWO = [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]


def counted(true: np.ndarray, taken: np.ndarray, classes: int) -> Confusion:
    counts = np.zeros((classes, classes))
    for a, b in zip(true, taken, strict=True):
        counts[a, b] += 1
    return Confusion("test", counts, true, taken, np.ones(len(true)))


def test_test_images_are_the_best_evidence() -> None:
    run = run_of(TWO, labels=[0, 0, 0], test_labels=[0, 1, 1, 1], test_probabilities=[[1, 0], [1, 0], [0, 1], [0, 1]])
    found = find_confusion(run)
    assert found is not None
    assert (found.kind, found.counts.tolist()) == ("test", [[1, 0], [1, 2]])
    assert found.shares.tolist() == pytest.approx(np.array([[1, 0], [1 / 3, 2 / 3]]))


def test_true_training_labels_are_the_next() -> None:
    found = find_confusion(run_of(TWO, labels=[0, 0, 1]))
    assert found is not None
    assert (found.kind, found.counts.tolist()) == ("training", [[1, 1], [1, 0]])


def test_without_any_truth_doubt_is_counted() -> None:
    """What remains with the second choice; an image with one candidate has none."""
    found = find_confusion(run_of([[0.75, 0.25, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]))
    assert found is not None
    assert found.kind == "hesitation"
    assert found.counts.tolist() == [[1.25, 0.25, 0.5], [0, 1, 0], [0, 0, 0]]
    assert found.shares[2].tolist() == [0, 0, 0]  # nothing was resolved to it


def test_there_may_be_no_evidence() -> None:
    run = run_of(TWO)
    run.candidates = None
    assert find_confusion(run) is None
    assert find_reliability(run) is None


def test_pairs_count_both_directions() -> None:
    true = np.array([0, 0, 1, 1, 2, 2])
    taken = np.array([1, 1, 0, 1, 2, 0])
    found = pairs(counted(true, taken, 3))
    assert [(pair.a, pair.b) for pair in found] == [(0, 1), (0, 2)]
    assert (found[0].a_for_b, found[0].b_for_a) == (1, 0.5)
    assert found[0].examples == (0, 1, 2)
    assert found[1].examples == (5,)


def test_nothing_is_mixed_up() -> None:
    assert pairs(counted(np.arange(4), np.arange(4), 4)) == []


def test_the_most_telling_images_come_first() -> None:
    true, taken = np.zeros(9, int), np.ones(9, int)
    weight = np.arange(9.0)
    (pair,) = pairs(Confusion("test", np.array([[0.0, 9], [0, 0]]), true, taken, weight))
    assert pair.examples == (8, 7, 6, 5, 4, 3)[:PAIR_IMAGES]


LABELS = arrays_of.arrays(np.int64, 30, elements=st.integers(0, 29))


@given(LABELS, LABELS)
def test_pairs_and_classes_are_those_with_most_mistakes(true: np.ndarray, taken: np.ndarray) -> None:
    confusion = counted(true, taken, 30)
    found = pairs(confusion)
    between = confusion.counts + confusion.counts.T
    frequent = [between[pair.a, pair.b] for pair in found]
    assert len(found) <= PAIRS
    assert frequent == sorted(frequent, reverse=True)
    assert all(pair.a < pair.b and count > 0 for pair, count in zip(found, frequent, strict=True))
    shown = matrix_classes(confusion)
    assert len(shown) == len(set(shown)) == MATRIX_CLASSES
    assert shown == sorted(shown)
    if found:
        assert {found[0].a, found[0].b} <= set(shown)


def test_few_classes_are_all_shown() -> None:
    assert matrix_classes(counted(np.arange(5), np.arange(5), 5)) == [0, 1, 2, 3, 4]


def test_reliability_by_hand() -> None:
    found = reliability(np.array([0.95, 0.93, 0.55, 0.51]), np.array([True, False, True, True]))
    assert found.said == pytest.approx([0.53, 0.94])
    assert found.right == pytest.approx([1.0, 0.5])
    assert found.error == pytest.approx((2 * 0.47 + 2 * 0.44) / 4)
    assert found.table == [(pytest.approx(0.94), 0.5, 2), (pytest.approx(0.53), 1.0, 2)]


def test_reliability_is_measured_on_tests_if_there_are_any() -> None:
    tested = run_of(TWO, labels=[0, 1, 0], test_labels=[0, 1], test_probabilities=[[0.8, 0.2], [0.9, 0.1]])
    found = find_reliability(tested)
    assert found is not None
    assert found.count.sum() == 2
    trained = find_reliability(run_of(TWO, labels=[0, 1, 0]))
    assert trained is not None
    assert (trained.right == 1).all()
    assert trained.count.sum() == 3
    assert find_reliability(run_of(TWO)) is None


@given(
    arrays_of.arrays(np.float64, (12, 3), elements=st.floats(0.01, 1)),
    arrays_of.arrays(np.int64, 12, elements=st.integers(0, 2)),
)
def test_the_error_is_that_of_the_rows(scores: np.ndarray, labels: np.ndarray) -> None:
    """The page and metrics.jsonl speak of the same number."""
    probabilities = scores / scores.sum(1, keepdims=True)
    found = reliability(probabilities.max(1), probabilities.argmax(1) == labels)
    assert found.error == pytest.approx(calibration_error(probabilities, labels))
    assert found.count.sum() == 12
