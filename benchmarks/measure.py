"""Timing in turns, and what makes a line of the table."""

import time
from collections.abc import Callable
from dataclasses import dataclass

TOLERANCE = 0.2  # a ratio may miss its target by this share before the benchmark fails: machines are never quite idle

Work = Callable[[], object]


@dataclass(frozen=True)
class Line:
    """One measurement. `ratio` is what the target is about: how many times as fast as the reference, or a share."""

    item: str
    reference: float | None  # seconds unless `unit` says otherwise
    ours: float
    ratio: float
    target: float | None = None
    at_most: bool = False  # the target is an upper bound: a share of something, not a speed-up
    unit: str = "s"
    share: float | None = None  # of a whole training step, where the item is a part of one

    def missed(self, tolerance: float = 0.0) -> bool:
        """Whether the target is missed by more than a share `tolerance` of it."""
        if self.target is None:
            return False
        if self.at_most:
            return self.ratio > self.target * (1 + tolerance)
        return self.ratio < self.target * (1 - tolerance)


def speedup(item: str, reference: float, ours: float, target: float | None) -> Line:
    """A line that says how many times as fast ours is."""
    return Line(item, reference, ours, reference / ours, target)


def in_turns(works: list[Work], times: int) -> list[float]:
    """The fastest of `times` calls of each, in turns, so that a busy moment of the machine strikes all alike."""
    best = [float("inf")] * len(works)
    for _ in range(times):
        for number, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - start)
    return best
