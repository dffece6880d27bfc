"""Every form of `y`, and every way in which it can be wrong."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from papi.data.own.targets import candidates_among, is_single, read_targets

MATRIX = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (MATRIX, [0, 1, 2]),
        (MATRIX.astype(bool), [0, 1, 2]),
        (MATRIX.astype(float), [0, 1, 2]),
        (csr_matrix(MATRIX), [0, 1, 2]),
        ([{"a", "b"}, {"b"}, {"a", "c"}], ["a", "b", "c"]),
        ([frozenset("ab"), ("b",), ["c", "a"]], ["a", "b", "c"]),
        (np.array([{1, 20}, {20}, {1, 300}], object), [1, 20, 300]),
        ([{(0, 1), (0, 2)}, {(0, 2)}, {(0, 1), (5, 5)}], [(0, 1), (0, 2), (5, 5)]),
        ([{1, "b"}, {"b"}, {1, "c"}], [1, "b", "c"]),
    ],
)
def test_the_same_sets_in_many_forms(y: Any, classes: list[Any]) -> None:
    found = read_targets(y)
    assert found.classes.tolist() == classes
    np.testing.assert_array_equal(found.candidates, MATRIX.astype(bool))
    assert found.labels is None
    assert not is_single(y)


@pytest.mark.parametrize("y", [["b", "a", "b"], np.array(["b", "a", "b"], object), ("b", "a", "b")])
def test_one_label_a_sample(y: Any) -> None:
    found = read_targets(y)
    assert found.classes.tolist() == ["a", "b"]
    assert found.labels is not None
    assert found.labels.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(found.candidates, [[False, True], [True, False], [False, True]])
    assert is_single(y)


def test_classes_give_the_order_and_the_names() -> None:
    assert read_targets([{"x"}, {"y"}], ["z", "y", "x"]).candidates.tolist() == [
        [False, False, True],
        [False, True, False],
    ]
    assert read_targets(MATRIX, ["p", "q", "r"]).classes.tolist() == ["p", "q", "r"]
    labels = read_targets(["x", "y"], ["y", "x"]).labels
    assert labels is not None
    assert labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("y", "classes", "says"),
    [
        (None, None, "target y is None"),
        (3, None, "one target per sample"),
        (np.array([[1, 0], [0, 0], [0, 0]]), None, r"y\[1\] is empty"),
        ([{1}, {2}, set()], None, r"y\[2\] is empty"),
        (np.array([[1, 0], [0, 2]]), None, r"y\[1\] has .*2.* in column 1: a candidate matrix must contain 0 and 1"),
        (np.array([[1, 0], [np.nan, 1]]), None, r"y\[1\] has .*nan"),
        (np.array([["a", "b"]]), None, r"y\[0\] has .*must contain 0 and 1"),
        (np.ones((2, 2, 2)), None, r"got \(2, 2, 2\)"),
        (np.ones((4, 3)), None, r"every label in every candidate set, from y\[0\]"),
        ([{1, 2}, {2, 1}], None, "every label in every candidate set"),
        (np.array([[1, 0], [1, 0]]), None, "only one class"),
        ([{"a"}, {"b"}, {"c"}], ["a", "b"], r"y\[2\] has the label 'c', which is not one of the classes: 'a', 'b'"),
        (["a", "c"], ["a", "b"], r"y\[1\] has the label 'c'"),
        (MATRIX, ["a", "b"], r"y\[0\] has 3 columns, but there are 2 classes"),
        (MATRIX, ["a", "b", "a"], "contains a class twice"),
        ([{"a"}, "b"], None, r"y\[1\] is 'b': use a set of labels for every sample"),
        ([["a"], [["b"]]], None, r"y\[1\].*hashable"),
        ([{1.0}, {float("nan")}], None, r"y\[1\].*not NaN"),
        ([[0, 1, 1], [1, 0, 0]], None, r"y\[0\] names a label twice.*as an array"),
        (np.array([0.0, 1.0, np.nan]), None, r"y\[2\] is nan"),
        ([0.5, 1.5, 0.1], None, "Unknown label type"),
    ],
)
def test_what_is_wrong_is_named(y: Any, classes: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_targets(y, classes)


def test_measuring_forgives_labels_that_training_never_saw() -> None:
    found = candidates_among([{"a", "new"}, {"new"}, "b"], np.array(["a", "b"]))
    assert found.tolist() == [[True, False], [False, False], [False, True]]
