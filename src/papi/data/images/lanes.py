"""Work on photos, each piece of it in one thread from decoding to the answer of a network.

Cores that share one forward pass wait for each other after every layer, and while one decodes the others have nothing
to do. Here no core waits, and a result does not depend on the number of threads.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def in_lanes(calls: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Results of calls in their order, computed by as many threads as torch has; in each, torch uses one."""
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[T]] = deque()
    try:
        for call in calls:
            waiting.append(pool.submit(call))
            if len(waiting) > 2 * threads:  # one in work and one ready for each: few, to save memory
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what threads begin with from now on; this one has kept its number
