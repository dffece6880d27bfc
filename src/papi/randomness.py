"""Every random number of a run. A draw depends only on (seed, stream, epoch, step), never on what was drawn before.

So there is no generator state to save: a run that continues after a kill draws what it would have drawn anyway.
"""

import hashlib
from typing import Any, cast

import numpy as np


def draws(seed: int, stream: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """The generator for one purpose (`stream`) at one place of the run."""
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
    # Philox counts up in the low words; epoch and step in the high words keep all places apart.
    return np.random.Generator(np.random.Philox(key=[seed, name], counter=[0, 0, step, epoch]))


def draws_of_rows(generator: np.random.Generator, rows: slice, count: int) -> np.random.Generator:
    """The generator as some rows of a batch see it that has `count` of them: it draws for all, and gives theirs.

    So processes that share a batch draw the same numbers as one process would. The first size of an array counts rows.
    """
    return generator if rows == slice(0, count) else cast(np.random.Generator, _RowDraws(generator, rows, count))


class _RowDraws:
    def __init__(self, generator: np.random.Generator, rows: slice, count: int) -> None:
        self.generator, self.rows, self.count = generator, rows, count

    def random(self, size: int | tuple[int, ...]) -> Any:
        return self.generator.random(self._whole(size))[self.rows]

    def uniform(self, low: float, high: float, size: int | tuple[int, ...]) -> Any:
        return self.generator.uniform(low, high, self._whole(size))[self.rows]

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> Any:
        return self.generator.integers(low, high, self._whole(size))[self.rows]

    def standard_normal(self, size: tuple[int, ...], dtype: Any) -> Any:
        return self.generator.standard_normal(self._whole(size), dtype)[self.rows]

    def _whole(self, size: int | tuple[int, ...]) -> tuple[int, ...]:
        return (self.count, *size[1:]) if isinstance(size, tuple) else (self.count,)


def seed_torch(seed: int, stream: str, epoch: int = 0, step: int = 0) -> None:
    """Seed torch's global generator (weight initialisation, dropout) from the same source."""
    import torch  # here, so that what reads data without training starts quickly

    number = int(draws(seed, stream, epoch, step).integers(2**63))
    # Not `torch.manual_seed`: it notes a call for later, with its stack, for every kind of device that is not in use,
    # which takes more than a millisecond a step.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(number)
