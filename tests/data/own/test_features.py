"""Feature tables: numbers in, float32 out, and every value that is none is named."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data.dataset import Dataset, refuse
from papi.data.own.features import finite_features, table_features, without_empty_classes
from papi.data.own.tables import Row, Table
from papi.errors import UserError


def table(*rows: dict[str, object]) -> Table:
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(Path("t.csv"), columns, tuple(Row(f"t.csv, line {k}", row) for k, row in enumerate(rows, 2)))


def test_columns_with_another_meaning_are_no_features() -> None:
    found = table_features(
        table(
            {"file_name": "a", "x": "1", "candidates": "cat|dog", "y": "2.5", "label": "cat", "split": "train"},
            {"file_name": "b", "x": "-3", "candidates": "dog", "y": "1e3", "label": "", "split": "test"},
        ),
        refuse,
    )
    np.testing.assert_array_equal(found, np.array([[1, 2.5], [-3, 1000]], np.float32))
    assert found.dtype == np.float32


@pytest.mark.parametrize("cell", ["", "x", None, "nan", "inf", "1e39", [1], 10**400])
def test_cells_that_are_no_finite_numbers_are_reported(cell: object) -> None:
    problems: list[str] = []
    found = table_features(table({"x": "1", "y": "2"}, {"x": "1", "y": cell}), problems.append)
    assert len(problems) == 1
    assert problems[0].startswith("t.csv, line 3 has ")
    assert "in the column 'y'" in problems[0]
    assert np.isnan(found[1, 1])
    assert np.isfinite(found).sum() == 3


def test_tables_without_features_or_rows() -> None:
    with pytest.raises(UserError, match=r"t.csv has no feature columns, only candidates, label"):
        table_features(table({"candidates": "cat", "label": "cat"}), refuse)
    with pytest.raises(UserError, match=r"t.csv has no usable rows"):
        table_features(Table(Path("t.csv"), ("x",), ()), refuse)
    with pytest.raises(UserError, match=r"f.npz has no feature columns"):
        finite_features(np.zeros((3, 0)), "f.npz", refuse)


@given(
    st.lists(
        st.lists(st.floats(width=64) | st.sampled_from([np.inf, -np.inf, np.nan, 1e300]), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_every_row_with_a_value_that_is_not_finite_is_reported_once(values: list[list[float]]) -> None:
    features, problems = np.array(values), list[str]()
    found = finite_features(features, "f.npz", problems.append)
    with np.errstate(over="ignore"):
        small = features.astype(np.float32)
    bad = ~np.isfinite(small)
    assert [problem.split(" has ")[0] for problem in problems] == [
        f"f.npz, row {row + 1}" for row in np.flatnonzero(bad.any(1))
    ]
    assert not np.isinf(found).any()
    np.testing.assert_array_equal(found[~bad], small[~bad])
    assert np.isnan(found[bad]).all()


def test_integers_and_transposed_arrays_become_plain_ones() -> None:
    found = finite_features(np.arange(6).reshape(2, 3).T, "f.npz", refuse)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, [[0, 3], [1, 4], [2, 5]])


SETS = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1], [1, 0, 1, 1]], bool)
DATA = Dataset(
    "four", tuple("abcd"), np.eye(4, 2, dtype=np.float32), (), (), labels=np.array([0, 1, 3, 3]), candidates=SETS
)


def test_a_class_of_no_sample_is_left_out() -> None:
    found = without_empty_classes(DATA)
    assert found.class_names == ("a", "b", "d")
    assert found.candidates is not None
    assert found.labels is not None
    np.testing.assert_array_equal(found.candidates, SETS[:, [0, 1, 3]])
    assert found.labels.tolist() == [0, 1, 2, 2]
    assert found.notes == ("removed classes of four without samples: c.",)


@pytest.mark.parametrize(
    "unchanged",
    [
        replace(DATA, labels=None),
        replace(DATA, candidates=None),
        replace(DATA, labels=np.array([0, 1, 2, 3])),
        replace(DATA, samples=np.zeros((4, 1, 2, 2), np.uint8)),
        replace(DATA, candidates=np.array([[0, 0, 1, 0], *SETS[1:]], bool)),  # the first set would become empty
    ],
)
def test_other_data_stay_as_they_are(unchanged: Dataset) -> None:
    assert without_empty_classes(unchanged) is unchanged
