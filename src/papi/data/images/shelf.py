"""The files of the embedding cache: one row per photo, in pieces during the computation, then in one table.

A record identifies its photo twice: by its state (path, size and time of its file) and by its content (its pixels). So
finished rows are found again after a kill, and also for a photo that was moved or belongs to another dataset.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from papi.files.durable import replacing
from papi.files.npz import map_npy


class Row(NamedTuple):
    """The record of one photo."""

    state: bytes
    content: bytes
    features: np.ndarray  # (1 + 2V, D) float16


class Place(NamedTuple):
    """The location of a photo's record."""

    file: Path
    row: int


class _VanishedError(Exception):
    """A piece no longer exists: another process has moved its rows into a table."""


class Shelf:
    """The pieces and tables of one encoder and recipe. Both are arrays with one record per photo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_state: dict[bytes, Place] = {}
        self.by_content: dict[bytes, Place] = {}

    def look(self) -> None:
        """Index all pieces and tables that exist now."""
        self.by_state.clear()
        self.by_content.clear()
        for file in sorted(self.folder.glob("*.npy")):
            self.learn(file)

    def learn(self, file: Path) -> bool:
        """Index the records of a piece or a table, if it exists."""
        names = _names(file)
        for row, (state, content) in enumerate(names or ()):
            self.by_state[state] = self.by_content[content] = Place(file, row)
        return names is not None

    def features(self, content: bytes) -> np.ndarray | None:
        """The features of a photo with these pixels; None if there are none."""
        place = self.by_content.get(content)
        records = None if place is None else _open(place.file)
        return None if place is None or records is None else np.array(records[place.row]["features"])

    def table(self, states: Sequence[bytes]) -> np.ndarray | None:
        """The table of photos in these states, if it exists. Pieces that it replaces are removed."""
        records = _open(self._file("table", states))
        if records is None or len(records) != len(states):
            return None
        self._remove_pieces(states)  # here, because a kill after the table was written leaves them on disk
        features: np.ndarray = records["features"]
        return features

    def piece(self, states: Sequence[bytes]) -> Path:
        """The file for the rows of these photos until the table is complete."""
        return self._file("piece", states)

    def write_piece(self, rows: Sequence[Row]) -> None:
        """Save some rows: they are on disk when this returns."""
        file = self.piece([row.state for row in rows])
        records = np.array([tuple(row) for row in rows], _record_type(rows[0].features.shape))
        _write(file, records.dtype, len(records), iter([records.tobytes()]))
        self.learn(file)

    def assemble(self, states: Sequence[bytes]) -> np.ndarray:
        """Write the table of photos once all rows exist."""
        file = self._file("table", states)
        while (table := self.table(states)) is None:
            try:
                _write(file, self._type(states), len(states), self._records(states))
            except _VanishedError:  # another process has moved that piece into a table
                self.look()
        return table

    def _remove_pieces(self, states: Sequence[bytes]) -> None:
        """Remove the pieces whose rows are all in the table of these photos."""
        own = set(states)
        for piece in self.folder.glob("piece-*.npy"):
            names = _names(piece)
            if names is not None and own.issuperset(state for state, _ in names):
                piece.unlink(missing_ok=True)

    def _type(self, states: Sequence[bytes]) -> np.dtype:
        records = _open(self.by_state[states[0]].file)
        if records is None:
            raise _VanishedError
        return records.dtype

    def _records(self, states: Sequence[bytes]) -> Iterator[bytes]:
        places = ((state, self.by_state[state]) for state in states)
        for file, group in groupby(places, lambda each: each[1].file):
            with _reading(file) as read:
                for state, place in group:
                    # The record may be of another file with the same pixels: store this photo's own state.
                    yield state + read(place.row)[len(state) :]

    def _file(self, kind: str, states: Sequence[bytes]) -> Path:
        return self.folder / f"{kind}-{hashlib.sha256(b''.join(states)).hexdigest()[:32]}.npy"


def _write(file: Path, dtype: np.dtype, count: int, parts: Iterator[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Written, not memory-mapped: on a full disk, a write raises an error, but a mapped page kills the process.
    with replacing(file) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(part)


def _record_type(shape: tuple[int, ...]) -> np.dtype:
    return np.dtype([("state", "V16"), ("content", "V16"), ("features", "<f2", shape)])


def _names(file: Path) -> list[tuple[bytes, bytes]] | None:
    """State and content of every record in a file; None if it is missing or damaged."""
    try:
        with _reading(file, length=32) as read:
            names = [read(row) for row in range(read.count)]
    except _VanishedError:
        return None
    return [(name[:16], name[16:]) for name in names]


class _Read:
    """Reads records by row. A memory-mapped file would be simpler, but its pages count as memory of the process."""

    def __init__(self, stream: FileIO, records: np.memmap, length: int | None) -> None:
        self.stream, self.count = stream, len(records)
        self.start, self.step = records.offset, records.itemsize
        self.length = length or self.step

    def __call__(self, row: int) -> bytes:
        self.stream.seek(self.start + row * self.step)
        return self.stream.read(self.length)


@contextmanager
def _reading(file: Path, length: int | None = None) -> Iterator[_Read]:
    """A reader of whole records of a file, or of the first bytes of each."""
    records = _open(file)
    if records is None:  # checked first, because opening a pipe would block
        raise _VanishedError
    try:
        stream = open(file, "rb", buffering=0)  # noqa: SIM115
    except FileNotFoundError:
        raise _VanishedError from None
    with stream:
        yield _Read(stream, records, length)


def _open(file: Path) -> np.memmap | None:
    """The records of a piece or a table; None if it is missing or damaged."""
    try:
        records = map_npy(file)
    except (OSError, ValueError):
        return None
    shape = records.dtype["features"].shape if "features" in (records.dtype.names or ()) else ()
    return records if records.ndim == 1 and len(shape) == 2 and records.dtype == _record_type(shape) else None
