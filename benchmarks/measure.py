"""Timing in turns, and what makes a line of the table."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import torch

from papi.training.allocator import keep_freed_memory

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


def speedup(item: str, seconds: Sequence[float], target: float | None) -> Line:
    """A line that says how many times as fast ours is, from the seconds of the reference and of ours."""
    reference, ours = seconds
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


def repeated(work: Work, times: int) -> Work:
    """For what takes less than a millisecond."""

    def run() -> None:
        for _ in range(times):
            work()

    return run


class Apart:
    """An object that lives in a process of its own, where its methods are called and timed.

    So a plain reference has the memory settings any script has, and ours has those of `papi train`.
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any, ours: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        threads = torch.get_num_threads()
        self.process = context.Process(target=_serve, args=(other, make, arguments, ours, threads), daemon=True)
        self.process.start()
        other.close()

    def __enter__(self) -> "Apart":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.connection.send(None)
        self.process.join()

    def call(self, name: str, *arguments: Any) -> tuple[float, Any]:
        """Seconds that a method took, and what it gave."""
        self.connection.send((name, arguments))
        seconds, result = self.connection.recv()
        return seconds, result


def _serve(connection: Connection, make: Callable[..., Any], arguments: Any, ours: bool, threads: int) -> None:
    if ours:
        keep_freed_memory()
    torch.set_num_threads(threads)
    served = make(*arguments)
    while (asked := connection.recv()) is not None:
        name, values = asked
        start = time.perf_counter()
        result = getattr(served, name)(*values)
        connection.send((time.perf_counter() - start, result))


def fastest_apart(processes: list[Apart], name: str, times: int, calls: int = 1) -> list[float]:
    """As `in_turns`, for a method of objects in other processes: seconds of one of the `calls` of a turn."""
    best = [float("inf")] * len(processes)
    for _ in range(times):
        for number, process in enumerate(processes):
            turn = sum(process.call(name)[0] for _ in range(calls))
            best[number] = min(best[number], turn / calls)
    return best
