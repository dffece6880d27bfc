"""Processes photos in parallel, each in one thread from decoding to the network's output.

Cores that share a forward pass wait for each other after every layer, and are idle while one decodes. Here no core
waits, and results do not depend on the number of threads.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def in_lanes(calls: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Results of calls in order, computed by as many threads as torch has; torch uses one thread in each."""
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[T]] = deque()
    try:
        for call in calls:
            waiting.append(pool.submit(call))
            if len(waiting) > 2 * threads:  # one running and one finished per thread, to save memory
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # restores the default for new threads; this thread kept its number
