"""A matrix `(N, K)` that is zero outside candidate sets, kept as its entries inside them, and the sets themselves.

For a million samples of a thousand classes, ten candidates each, this takes 86 MB instead of 5 GB. Whoever works on all
rows takes some at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from papi.files.reading import memory_bytes

PACKED_ABOVE = 2**24  # entries N×K of a mask from which it is written packed, if it is thin
_THIN = 4  # times fewer candidates than entries
_AT_ONCE = 2**21  # entries of a matrix that is worked on in parts


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Stands in for the matrix: `rows[index]` gives some rows `(n, K)`, and `np.asarray(rows)` all of them."""

    values: np.ndarray  # (E,) the entries of the first row, of the second …
    columns: np.ndarray  # (E,) whole numbers, rising within a row
    starts: np.ndarray  # (N + 1,) int64: where each row begins, and the end
    classes: int

    @classmethod
    def of(cls, matrix: np.ndarray, inside: np.ndarray) -> "PackedRows":
        """What a matrix `(N, K)` holds inside of sets `(N, K) bool`."""
        columns, sizes = _columns(inside)
        return cls(matrix[inside], columns, _starts(sizes), inside.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and classes."""
        return len(self.starts) - 1, self.classes

    @property
    def dtype(self) -> np.dtype:
        """Of the entries."""
        return self.values.dtype

    @property
    def sizes(self) -> np.ndarray:
        """How many entries each row has, `(N,)`."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        some = self.taking(np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows)
        whole = np.zeros(some.shape, self.dtype)
        whole[np.repeat(np.arange(len(some)), some.sizes), some.columns] = some.values
        return whole

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """All rows: all the memory that is saved otherwise."""
        return self[:] if dtype is None else self[:].astype(dtype)

    def taking(self, rows: np.ndarray) -> "PackedRows":
        """These rows, in this order."""
        first = self.starts[:-1][rows]
        sizes = self.starts[1:][rows] - first  # not `self.sizes`, which takes a million differences for a single row
        starts = _starts(sizes)
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
        return PackedRows(self.values[places], self.columns[places], starts, self.classes)

    def followed_by(self, other: "PackedRows") -> "PackedRows":
        """The rows of both."""
        return PackedRows(
            np.concatenate((self.values, other.values)),
            np.concatenate((self.columns, other.columns)),
            np.concatenate((self.starts, self.starts[-1] + other.starts[1:])),
            self.classes,
        )

    def padded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, columns and which of them count, each `(N, width)`; shorter rows are filled up with zeros."""
        inside = np.arange(self.sizes.max(initial=0)) < self.sizes[:, None]
        values, columns = np.zeros(inside.shape, self.dtype), np.zeros(inside.shape, np.int64)
        values[inside], columns[inside] = self.values, self.columns
        return values, columns, inside

    def fits(self, candidates: np.ndarray) -> bool:
        """Whether the entries are those of the sets `(N, K) bool`."""
        if self.shape != candidates.shape:
            return False
        return all(
            np.array_equal(self.sizes[part], candidates[part].sum(1))
            and bool(candidates[part][self.taking(np.arange(part.start, part.stop))._places()].all())
            for part in parts_of(*self.shape)
        )

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(np.arange(len(self)), self.sizes), self.columns


Matrix = np.ndarray | PackedRows
"""A matrix `(N, K)` in one of both forms."""


def parts_of(samples: int, classes: int) -> Iterator[slice]:
    """The rows of a matrix `(N, K)`, as many at a time as one can well have in memory several times."""
    at_once = max(1, _AT_ONCE // max(1, classes) // 8 * 8)
    return (slice(start, min(start + at_once, samples)) for start in range(0, samples, at_once))


def worth_packing(candidates: np.ndarray) -> bool:
    """Whether a mask `(N, K) bool` is large and thin."""
    return candidates.size > PACKED_ABOVE and _THIN * int(np.count_nonzero(candidates)) < candidates.size


def pack_sets(candidates: np.ndarray) -> dict[str, np.ndarray]:
    """A mask `(N, K) bool` as arrays for a file."""
    found = [_columns(candidates[part]) for part in parts_of(*candidates.shape)]
    columns, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
    return {"columns": columns, "starts": _starts(sizes), "classes": np.array(candidates.shape[1])}


def unpack_sets(columns: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The inverse of `pack_sets`. ValueError says what does not fit together: files may hold anything."""
    rows = checked_rows(np.ones(len(columns), bool), columns, starts, classes)
    if len(rows) * rows.classes > memory_bytes():
        raise ValueError(f"sets of {len(rows):,} samples and {rows.classes:,} classes do not fit into memory")
    mask = np.zeros(rows.shape, bool)
    for part in parts_of(*rows.shape):
        mask[part] = rows[part]
    return mask


def checked_rows(values: np.ndarray, columns: np.ndarray, starts: np.ndarray, classes: np.ndarray) -> PackedRows:
    """Packed rows out of a file. ValueError says what does not fit together."""
    whole = all(array.dtype.kind in "iu" for array in (columns, starts, classes))
    flat = (values.ndim, columns.ndim, starts.ndim, classes.ndim) == (1, 1, 1, 0)
    if not whole or not flat or not len(values) == len(columns) or len(starts) < 2:
        raise ValueError("its packed rows are of another kind")
    sizes = np.diff(starts.astype(np.int64))
    ends = starts[0] == 0 and starts[-1] == len(columns) and (sizes >= 0).all()
    rising = np.diff(columns.astype(np.int64)) > 0
    if ends and len(columns):
        first = starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(columns))].astype(np.int64)
        rising[first - 1] = True  # a new row
    if not ends or not rising.all() or (len(columns) and not 0 <= int(columns.min()) <= columns.max() < classes):
        raise ValueError("its packed rows do not fit together")
    return PackedRows(values, columns, starts.astype(np.int64), int(classes))


def _columns(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of all candidates of sets `(n, K) bool`, row by row, and how many each row has."""
    kind = np.int16 if inside.shape[1] <= 2**15 else np.int32
    return inside.nonzero()[1].astype(kind), inside.sum(1)


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
