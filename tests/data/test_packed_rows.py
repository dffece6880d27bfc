"""Matrices that are zero outside candidate sets: packed rows say the same as whole ones; files may hold anything."""

import numpy as np
import pytest

from papi.data import packed_rows
from papi.data.packed_rows import PackedRows, checked_rows, pack_sets, parts_of, unpack_sets, worth_packing

generator = np.random.default_rng(0)
MASK = generator.random((50, 12)) < 0.2
MASK[np.arange(50), generator.integers(0, 12, 50)] = True
MASK[7] = True
VALUES = np.where(MASK, generator.random(MASK.shape), 0).astype(np.float32)
ROWS = PackedRows.of(VALUES, MASK)


def test_rows_are_those_of_the_matrix() -> None:
    assert (ROWS.shape, len(ROWS), ROWS.dtype) == (VALUES.shape, 50, np.float32)
    assert np.array_equal(np.asarray(ROWS), VALUES)
    assert np.array_equal(ROWS[3:9], VALUES[3:9])
    some = np.array([40, 7, 7, 0])
    assert np.array_equal(ROWS[some], VALUES[some])
    assert np.array_equal(np.asarray(ROWS.taking(some).followed_by(ROWS)), np.concatenate((VALUES[some], VALUES)))
    assert np.array_equal(ROWS[np.arange(0)], VALUES[:0])


def test_padded_rows() -> None:
    values, columns, inside = ROWS.padded()
    assert inside.shape == (50, 12)
    for row in range(50):
        assert columns[row, inside[row]].tolist() == np.flatnonzero(MASK[row]).tolist()
        assert values[row, inside[row]].tolist() == VALUES[row, MASK[row]].tolist()


def test_which_sets_the_rows_are_of() -> None:
    other = MASK.copy()
    other[3] = ~other[3]
    same_sizes = np.roll(MASK, 1, axis=1)
    assert ROWS.fits(MASK)
    assert not any(ROWS.fits(sets) for sets in (other, same_sizes, MASK[:-1], MASK[:, :-1]))


def test_parts_cover_all_rows_in_whole_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "_AT_ONCE", 200)
    parts = list(parts_of(50, 12))
    assert len(parts) > 1
    assert np.concatenate([np.arange(50)[part] for part in parts]).tolist() == list(range(50))
    assert all((part.stop - part.start) % 8 == 0 for part in parts[:-1])
    assert list(parts_of(0, 12)) == []


def test_sets_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "_AT_ONCE", 200)
    packed = pack_sets(MASK)
    assert np.array_equal(unpack_sets(**packed), MASK)
    assert not worth_packing(MASK)
    monkeypatch.setattr(packed_rows, "PACKED_ABOVE", 100)
    assert worth_packing(np.eye(20, dtype=bool))
    assert not worth_packing(np.ones((20, 20), bool))


GOOD = {"columns": np.array([0, 2, 1]), "starts": np.array([0, 2, 3]), "classes": np.array(3)}
BAD = {
    "a column beyond the classes": {"columns": np.array([0, 3, 1])},
    "a column before the first": {"columns": np.array([-1, 2, 1])},
    "a column twice": {"columns": np.array([2, 2, 1])},
    "columns that fall": {"columns": np.array([2, 0, 1])},
    "columns that are no whole numbers": {"columns": np.array([0.0, 2, 1])},
    "a table of columns": {"columns": np.array([[0], [2], [1]])},
    "starts that fall": {"starts": np.array([0, 4, 3])},
    "starts after the first entry": {"starts": np.array([1, 2, 3])},
    "starts before the last entry": {"starts": np.array([0, 1, 2])},
    "no rows": {"starts": np.array([0])},
    "several numbers of classes": {"classes": np.array([3, 3])},
    "more than any memory holds": {"classes": np.array(2**60)},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_what_does_not_fit_together_is_refused(change: dict[str, np.ndarray]) -> None:
    assert unpack_sets(**GOOD).tolist() == [[True, False, True], [False, True, False]]
    with pytest.raises(ValueError, match=r"packed rows|fit into memory"):
        unpack_sets(**(GOOD | change))


def test_as_many_values_as_places() -> None:
    assert checked_rows(np.array([0.5, 0.5, 1.0]), **GOOD)[:].tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    with pytest.raises(ValueError, match="packed rows"):
        checked_rows(np.ones(2), **GOOD)
