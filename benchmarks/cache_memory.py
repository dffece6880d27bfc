"""Peak memory of building an image cache: `python -m benchmarks.cache_memory FOLDER SIDE` prints it in MB.

It runs in a separate process and imports only what reading images needs.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from papi.data.images.cache import Wanted, read_images


def highest(process: str) -> float:
    """Peak memory of a process so far, in MB.

    `getrusage` is not usable: its peak includes the memory of the parent when it started the process.
    """
    return int(Path(f"/proc/{process}/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


def children() -> Iterator[str]:
    for file in Path("/proc/self/task").glob("*/children"):
        yield from file.read_text().split()


if __name__ == "__main__":
    read_images(sorted(Path(sys.argv[1]).iterdir()), Wanted(int(sys.argv[2])), processes=2)
    workers = [highest(child) for child in children()]  # they stay alive for a while
    assert len(workers) >= 2, "the workers have already exited"
    print(highest("self") + sum(workers))
