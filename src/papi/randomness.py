"""Random numbers of a run. A draw depends only on (seed, stream, epoch, step), not on earlier draws.

There is no generator state to save: a run that resumes after a kill draws the same numbers as an uninterrupted one.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Protocol

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

Size = int | tuple[int, ...]


def draws(seed: int, stream: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """The generator for one purpose (`stream`) at one epoch and step of the run."""
    # Philox counts up in the low words; epoch and step in the high words keep the sequences distinct.
    return np.random.Generator(np.random.Philox(_Key(seed, stream), counter=[0, 0, step, epoch]))  # type: ignore[arg-type]


class _Key(ISeedSequence):
    """The key of a stream. If it were passed as `key`, numpy would still ask the system for a seed first."""

    def __init__(self, seed: int, stream: str) -> None:
        # numpy makes floats of a small and a very large integer. Their rounding is part of the key of earlier versions.
        self.words = np.array([seed, _number_of(stream)]).astype(np.uint64)

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.uint64]:
        """The two words that Philox asks for."""
        return self.words


@cache
def _number_of(stream: str) -> int:
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")


class Draws(Protocol):
    """The generator methods that views use. They return arrays with one row per sample of a batch.

    `np.random.Generator` implements it. The first number of a size is the number of rows.
    """

    def random(self, size: Size, /) -> NDArray[np.float64]:
        """Uniform numbers in [0, 1)."""

    def uniform(self, low: float, high: float, size: Size, /) -> NDArray[np.float64]:
        """Uniform numbers in [low, high)."""

    def integers(self, low: int, high: int, size: Size, /) -> NDArray[np.int64]:
        """Uniform integers from `low` to `high` - 1."""

    def standard_normal(self, size: Size, dtype: type[np.float32], /) -> NDArray[np.float32]:
        """Normal numbers with mean 0 and variance 1."""


def draws_of_rows(generator: np.random.Generator, rows: slice, count: int) -> Draws:
    """Draws for some rows of a batch of `count`: numbers are drawn for the whole batch, and these rows are returned.

    Processes that share a batch therefore draw the same numbers as one process that has all of it.
    """
    return generator if rows == slice(0, count) else _RowDraws(generator, rows, count)


class _RowDraws:
    """Draws for the whole batch and keeps the rows of one process."""

    def __init__(self, generator: np.random.Generator, rows: slice, count: int) -> None:
        self.generator, self.rows, self.count = generator, rows, count

    def random(self, size: Size, /) -> NDArray[np.float64]:
        return self.generator.random(self._whole(size))[self.rows]

    def uniform(self, low: float, high: float, size: Size, /) -> NDArray[np.float64]:
        return self.generator.uniform(low, high, self._whole(size))[self.rows]

    def integers(self, low: int, high: int, size: Size, /) -> NDArray[np.int64]:
        return self.generator.integers(low, high, self._whole(size))[self.rows]

    def standard_normal(self, size: Size, dtype: type[np.float32], /) -> NDArray[np.float32]:
        return self.generator.standard_normal(self._whole(size), dtype)[self.rows]

    def _whole(self, size: Size) -> tuple[int, ...]:
        rows, *others = (size,) if isinstance(size, int) else size
        assert rows == self.rows.stop - self.rows.start, "a draw has a row for each sample"
        return self.count, *others


def draws_by_row(generators: Sequence[np.random.Generator]) -> Draws:
    """Draws whose row i comes only from generator i, so that it does not depend on the other samples of a batch."""
    return _ManyDraws(generators)


class _ManyDraws:
    """Draws each row from its own generator."""

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self.generators = generators

    def random(self, size: Size, /) -> NDArray[np.float64]:
        return np.stack([each.random(row) for each, row in self._rows(size)])

    def uniform(self, low: float, high: float, size: Size, /) -> NDArray[np.float64]:
        return np.stack([each.uniform(low, high, row) for each, row in self._rows(size)])

    def integers(self, low: int, high: int, size: Size, /) -> NDArray[np.int64]:
        return np.stack([each.integers(low, high, row) for each, row in self._rows(size)])

    def standard_normal(self, size: Size, dtype: type[np.float32], /) -> NDArray[np.float32]:
        return np.stack([each.standard_normal(row, dtype) for each, row in self._rows(size)])

    def _rows(self, size: Size) -> Iterator[tuple[np.random.Generator, tuple[int, ...]]]:
        rows, *others = (size,) if isinstance(size, int) else size
        assert rows == len(self.generators), "a draw has a row for each sample"
        return ((each, tuple(others)) for each in self.generators)


def seed_torch(seed: int, stream: str, epoch: int = 0, step: int = 0) -> None:
    """Seed torch's global generator (weight initialisation, dropout) from the same source."""
    import torch  # imported here so that commands that do not train start quickly

    number = int(draws(seed, stream, epoch, step).integers(2**63))
    # Not `torch.manual_seed`: it records a deferred call with its stack for every kind of device that is not in use,
    # which takes more than a millisecond per step.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(number)
