"""Timing of alternating runs, and the lines of the table."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from types import TracebackType
from typing import Any

import torch

from papi.training.allocator import keep_freed_memory

TOLERANCE = 0.2  # a ratio may miss its target by this share before the benchmark fails, because machines are never idle
FREE = 0.9  # share of the CPU that a measurement needs for a verdict

Work = Callable[[], object]


@dataclass(frozen=True)
class Line:
    """One measurement. The target applies to `ratio`: a share, or the overhead over the limit of the machine.

    A comparison with a plain implementation has no target, because the possible speed-up depends on the machine.
    """

    item: str
    reference: float | None  # seconds unless `unit` says otherwise
    ours: float
    ratio: float
    target: float | None = None
    at_most: bool = False  # the target is an upper bound: a share of something, not a speed-up
    unit: str = "s"
    share: float | None = None  # of a whole training step, if the item is part of one
    free: float = 1.0  # share of the CPU that was available to the measurement

    def missed(self, tolerance: float = 0.0) -> bool:
        """Whether the target is missed by more than a share `tolerance` of it."""
        if self.target is None:
            return False
        if self.at_most:
            return self.ratio > self.target * (1 + tolerance)
        return self.ratio < self.target * (1 - tolerance)

    def failed(self) -> bool:
        """Whether the target is missed by more than the tolerance, on a machine that was idle enough."""
        return self.missed(TOLERANCE) and self.free >= FREE

    def unjudged(self) -> bool:
        """Whether the target is missed by as much, possibly because other processes kept the machine busy."""
        return self.missed(TOLERANCE) and self.free < FREE


def speedup(item: str, seconds: Sequence[float]) -> Line:
    """A line with the speed-up of ours over the reference, given the seconds of both."""
    reference, ours = seconds
    return Line(item, reference, ours, reference / ours)


def beyond(item: str, limit: float, ours: float, target: float) -> Line:
    """A line with the relative overhead of ours over the limit of the machine, both in seconds of the same run."""
    return Line(item, limit, ours, ours / limit - 1, target, at_most=True)


def better(first: Line, second: Line) -> Line:
    """The better of two measurements of an item with respect to its target; without a target, the faster one."""
    if first.target is None:
        return min(first, second, key=lambda line: line.ours)
    return (min if first.at_most else max)(first, second, key=lambda line: line.ratio)


def in_turns(works: list[Work], times: int) -> list[float]:
    """The fastest of `times` calls of each. Calls alternate, so that a busy machine affects all of them alike."""
    best = [float("inf")] * len(works)
    for _ in range(times):
        for number, work in enumerate(works):
            best[number] = min(best[number], _seconds(work))
    return best


def side_by_side(reference: Work, ours: Work, times: int) -> tuple[float, float]:
    """The median seconds of the reference, and the same times the median ratio of ours to it.

    The two calls of a turn follow each other. Other guests of the same host slow both of them, so their ratio varies
    less than the fastest call of each does.
    """
    pairs = [(_seconds(reference), _seconds(ours)) for _ in range(times)]
    limit = median(first for first, _ in pairs)
    return limit, limit * median(second / first for first, second in pairs)


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def repeated(work: Work, times: int) -> Work:
    """Call `work` several times, for work that takes less than a millisecond."""

    def run() -> None:
        for _ in range(times):
            work()

    return run


class Apart:
    """An object in a separate process, where its methods are called and timed.

    The plain reference runs with default memory settings, ours with those of `papi train`.
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
        """The seconds that a method took, and its result."""
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
    """Like `in_turns`, for a method of objects in other processes: seconds per call, with `calls` in each turn."""
    best = [float("inf")] * len(processes)
    for _ in range(times):
        for number, process in enumerate(processes):
            turn = sum(process.call(name)[0] for _ in range(calls))
            best[number] = min(best[number], turn / calls)
    return best
