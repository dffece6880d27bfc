"""How much memory it takes to build the cache of a folder: `python -m benchmarks.cache_memory FOLDER SIDE` prints MB.

It is a process of its own and imports no more than reading images does.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from papi.data.images.cache import Wanted, read_images


def highest(process: str) -> float:
    """The most that a process has had in memory so far, in MB.

    The count of `getrusage` would not do: it begins with what the parent had when it started the process.
    """
    return int(Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


def children() -> Iterator[str]:
    for file in Path("/proc/self/task").glob("*/children"):
        yield from file.read_text().split()


if __name__ == "__main__":
    read_images(sorted(Path(sys.argv[1]).iterdir()), Wanted(int(sys.argv[2])), processes=2)
    workers = [highest(child) for child in children()]  # they stay alive for a while
    assert len(workers) >= 2, "the workers have gone already"
    print(highest("self") + sum(workers))
