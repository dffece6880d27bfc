"""Computes the next results in a background thread while the caller uses the current one."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")

AHEAD = 2  # results that wait for the caller


def made_ahead(work: Callable[[A], T], arguments: Iterable[A]) -> Generator[T, None, None]:
    """The results of `work` for each argument, in order. The thread ends when the iterator ends, fails or is closed."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="papi-ahead")
    waiting: deque[Future[T]] = deque()
    try:
        for argument in arguments:
            waiting.append(pool.submit(work, argument))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
