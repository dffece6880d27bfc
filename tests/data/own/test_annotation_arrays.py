"""Candidate sets as arrays: rows keep what belongs to them, and files say what they hold."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data.own.annotation_arrays import Annotations, checked_labels, class_names, from_arrays, load_npz
from papi.errors import UserError

PATH = Path("sets.npz")


def annotations(count: int, first: int = 0, votes: bool = False) -> Annotations:
    """Rows whose every part tells their number."""
    number = np.arange(first, first + count)
    return Annotations(
        source="t.csv",
        where=tuple(f"row {k}" for k in number),
        class_names=("a", "b"),
        candidates=np.stack([number % 2 == 0, number % 3 == 0], 1),
        labels=number.astype(np.int64),
        test=number % 5 == 0,
        file_names=tuple(f"{k}.png" for k in number),
        votes=np.stack([number, number], 1) if votes else None,
        notes=(f"from {first}",),
        named=frozenset(f"{k}.png" for k in number),
    )


def assert_rows(found: Annotations, numbers: list[int]) -> None:
    assert found.where == tuple(f"row {k}" for k in numbers)
    assert found.file_names == tuple(f"{k}.png" for k in numbers)
    assert found.labels.tolist() == numbers
    assert found.test.tolist() == [k % 5 == 0 for k in numbers]
    assert found.candidates.tolist() == [[k % 2 == 0, k % 3 == 0] for k in numbers]
    if found.votes is not None:
        assert found.votes.tolist() == [[k, k] for k in numbers]


@given(st.integers(1, 12), st.booleans(), st.data())
def test_rows_stay_together(count: int, votes: bool, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=10))
    assert_rows(annotations(count, votes=votes).taking(np.array(rows, np.int64)), rows)


@given(st.integers(0, 6), st.integers(0, 6), st.booleans(), st.booleans())
def test_the_rows_of_two_tables(first: int, second: int, votes: bool, other_votes: bool) -> None:
    both = annotations(first, votes=votes).followed_by(annotations(second, first, other_votes))
    assert_rows(both, list(range(first + second)))
    assert (both.votes is not None) == (votes and other_votes)
    assert both.notes == ("from 0", f"from {first}")
    assert both.named == frozenset(f"{k}.png" for k in range(first + second))


def test_sets_alone_are_enough() -> None:
    found = from_arrays({"candidates": np.eye(3)}, PATH, None, "union")
    assert found.class_names == ("0", "1", "2")
    assert found.labels.tolist() == [-1, -1, -1]
    assert not found.test.any()
    assert (found.file_names, found.votes) == (None, None)


def test_everything_a_file_can_say() -> None:
    arrays = {
        "candidates": np.array([[1, 1], [0, 1]], np.uint8),
        "labels": np.array([0, -1]),
        "split": np.array(["test", "train"]),
        "file_names": np.array(["x.png", "y.png"]),
        "class_names": np.array(["cat", "dog"]),
    }
    found = from_arrays(arrays, PATH, None, "union")
    assert found.class_names == ("cat", "dog")
    assert found.labels.tolist() == [0, -1]
    assert found.test.tolist() == [True, False]
    assert found.file_names == ("x.png", "y.png")
    assert found.candidates.dtype == bool


@pytest.mark.parametrize(("rule", "expected"), [("union", [[1, 1], [0, 1]]), ("at-least-2", [[1, 0], [0, 1]])])
def test_counts_are_votes(rule: str, expected: list[list[int]]) -> None:
    counts = np.array([[3, 1], [0, 2]])
    found = from_arrays({"counts": counts}, PATH, None, rule)
    assert found.candidates.astype(int).tolist() == expected
    assert found.votes is counts


@pytest.mark.parametrize("name", ["weights", "probabilities"])
def test_weights_are_candidates_with_shares(name: str) -> None:
    found = from_arrays({name: np.array([[6, 2, 0], [0, 0, 0], [0, 0, 0.5]])}, PATH, None, "union")
    assert found.candidates.tolist() == [[True, True, False], [False, False, False], [False, False, True]]
    assert found.weights is not None
    assert found.weights.tolist() == [[0.75, 0.25, 0], [0, 0, 0], [0, 0, 1]]
    assert found.votes is None


def test_weights_beside_candidates_count_among_these() -> None:
    arrays = {"candidates": np.array([[1, 1, 0], [0, 1, 1]]), "probabilities": np.array([[0.3, 0.1, 0.6], [0.7, 0, 1]])}
    found = from_arrays(arrays, PATH, None, "union")
    assert found.candidates.tolist() == [[True, True, False], [False, False, True]], "weight zero is no candidate"
    assert found.weights is not None
    np.testing.assert_allclose(found.weights, [[0.75, 0.25, 0], [0, 0, 1]])
    assert from_arrays(arrays, PATH, None, "union", 0.3).candidates.sum(1).tolist() == [1, 1]


def test_names_must_be_those_that_are_known() -> None:
    arrays = {"candidates": np.eye(2), "class_names": np.array(["dog", "cat"])}
    assert from_arrays(arrays, PATH, ("dog", "cat"), "union").class_names == ("dog", "cat")
    with pytest.raises(UserError, match=r"class_names in sets.npz: the order must be cat, dog"):
        from_arrays(arrays, PATH, ("cat", "dog"), "union")
    with pytest.raises(UserError, match=r"class_names in sets.npz: unknown label 'dog': did you mean 'dogs'"):
        from_arrays(arrays, PATH, ("dogs", "cat"), "union")
    with pytest.raises(UserError, match="2 columns of candidates for 3 classes"):
        from_arrays({"candidates": np.eye(2)}, PATH, ("a", "b", "c"), "union")


def test_numbers_can_name_classes() -> None:
    assert class_names({"class_names": np.array([10, 20])}, PATH) == ("10", "20")
    assert class_names({}, PATH) is None


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=8))
def test_labels_in_range(labels: list[int]) -> None:
    array = np.array(labels, np.int16)
    found = checked_labels(array, len(labels), 5, "labels", least=-1)
    assert found.dtype == np.int64
    assert found.tolist() == labels


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.array([0, 1]), r"labels must be 3 integers; got int64 of shape \(2,\)"),
        (np.array([0.0, 1, 2]), "labels must be 3 integers; got float64"),
        (np.array([[0, 1, 2]]), r"of shape \(1, 3\)"),
        (np.array([0, 1, -1]), "row 3 of labels must be 0 to 1; got -1"),
        (np.array([0, 2, 1]), "row 2 of labels must be 0 to 1; got 2"),
    ],
)
def test_labels_that_are_none(labels: np.ndarray, says: str) -> None:
    with pytest.raises(UserError, match=says):
        checked_labels(labels, 3, 2, "labels")


def test_archives_hold_no_objects(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", a=np.eye(2))
    np.testing.assert_array_equal(load_npz(tmp_path / "good.npz")["a"], np.eye(2))
    np.savez(tmp_path / "bad.npz", a=np.array([{"x": 1}], object))
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:-30])
    for name in ("bad.npz", "damaged.npz", "missing.npz"):
        with pytest.raises(UserError, match=rf"{name} cannot be read .*numpy.savez, without objects"):
            load_npz(tmp_path / name)
