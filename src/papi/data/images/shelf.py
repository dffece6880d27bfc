"""The files of the cache of embeddings: rows by photo, in pieces while they are computed, then in one table.

A record names its photo twice: by its state, the path, size and time of its file, and by its content, its pixels. So
all that was computed is found again after a kill, and also for a photo that was moved or belongs to another set.
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
    """What is known of one photo."""

    state: bytes
    content: bytes
    features: np.ndarray  # (1 + 2V, D) float16


class Place(NamedTuple):
    """Where the record of a photo is."""

    file: Path
    row: int


class _VanishedError(Exception):
    """A piece is gone: another process has put its rows into a table and removed it."""


class Shelf:
    """The pieces and tables of one encoder and recipe. Both are arrays with a record for each photo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_state: dict[bytes, Place] = {}
        self.by_content: dict[bytes, Place] = {}

    def look(self) -> None:
        """Learn what is there now."""
        self.by_state.clear()
        self.by_content.clear()
        for file in sorted(self.folder.glob("*.npy")):
            self.learn(file)

    def learn(self, file: Path) -> bool:
        """Learn what is in a piece or a table, if it is there."""
        names = _names(file)
        for row, (state, content) in enumerate(names or ()):
            self.by_state[state] = self.by_content[content] = Place(file, row)
        return names is not None

    def features(self, content: bytes) -> np.ndarray | None:
        """What is known of a photo with these pixels."""
        place = self.by_content.get(content)
        records = None if place is None else _open(place.file)
        return None if place is None or records is None else np.array(records[place.row]["features"])

    def table(self, states: Sequence[bytes]) -> np.ndarray | None:
        """The table of photos in these states, if it is there."""
        records = _open(self._file("table", states))
        if records is None or len(records) != len(states):
            return None
        features: np.ndarray = records["features"]
        return features

    def piece(self, states: Sequence[bytes]) -> Path:
        """Where the rows of these photos are while the table is not complete."""
        return self._file("piece", states)

    def write_piece(self, rows: Sequence[Row]) -> None:
        """Keep some rows: they are on disk when this returns."""
        file = self.piece([row.state for row in rows])
        records = np.array([tuple(row) for row in rows], _record_type(rows[0].features.shape))
        _write(file, records.dtype, len(records), iter([records.tobytes()]))
        self.learn(file)

    def assemble(self, states: Sequence[bytes]) -> np.ndarray:
        """Write the table of photos whose rows are all known, and remove the pieces that are now part of it."""
        file = self._file("table", states)
        while (table := self.table(states)) is None:
            try:
                _write(file, self._type(states), len(states), self._records(states))
            except _VanishedError:  # another process has made a table of that piece
                self.look()
        own = set(states)
        for piece in self.folder.glob("piece-*.npy"):
            names = _names(piece)
            if names is not None and own.issuperset(state for state, _ in names):
                piece.unlink(missing_ok=True)
        return table

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
                    # The photo may have been found by its pixels, under another name: its own state comes first.
                    yield state + read(place.row)[len(state) :]

    def _file(self, kind: str, states: Sequence[bytes]) -> Path:
        return self.folder / f"{kind}-{hashlib.sha256(b''.join(states)).hexdigest()[:32]}.npy"


def _write(file: Path, dtype: np.dtype, count: int, parts: Iterator[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Written, not mapped: on a full disk a write fails with an error, a mapped page kills the process.
    with replacing(file) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts:
            stream.write(part)


def _record_type(shape: tuple[int, ...]) -> np.dtype:
    return np.dtype([("state", "V16"), ("content", "V16"), ("features", "<f2", shape)])


def _names(file: Path) -> list[tuple[bytes, bytes]] | None:
    """State and content of every record in a file; None if it is not there or damaged."""
    try:
        with _reading(file, length=32) as read:
            names = [read(row) for row in range(read.count)]
    except _VanishedError:
        return None
    return [(name[:16], name[16:]) for name in names]


class _Read:
    """Reads records by their rows. A mapped file would be simpler, but its pages count as memory of the process."""

    def __init__(self, stream: FileIO, records: np.memmap, length: int | None) -> None:
        self.stream, self.count = stream, len(records)
        self.start, self.step = records.offset, records.itemsize
        self.length = length or self.step

    def __call__(self, row: int) -> bytes:
        self.stream.seek(self.start + row * self.step)
        return self.stream.read(self.length)


@contextmanager
def _reading(file: Path, length: int | None = None) -> Iterator[_Read]:
    """What reads whole records of a file, or the first bytes of each."""
    records = _open(file)
    if records is None:  # it may also be a pipe, which waits for ever when it is opened
        raise _VanishedError
    try:
        stream = open(file, "rb", buffering=0)  # noqa: SIM115
    except FileNotFoundError:
        raise _VanishedError from None
    with stream:
        yield _Read(stream, records, length)


def _open(file: Path) -> np.memmap | None:
    """The records of a piece or a table; None if it is not there or damaged."""
    try:
        records = map_npy(file)
    except (OSError, ValueError):
        return None
    shape = records.dtype["features"].shape if "features" in (records.dtype.names or ()) else ()
    return records if records.ndim == 1 and len(shape) == 2 and records.dtype == _record_type(shape) else None
