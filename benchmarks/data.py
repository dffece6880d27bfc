"""How fast data become ready for training, against plain ways of doing the same, in one run on one machine.

    python benchmarks/data.py

Each line is measured in turns, the fastest of several counts, and what matters is the ratio: it says the same on any
machine. `measure()` gives the lines as (item, reference seconds, our seconds, ratio, target).
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image

from papi.data import candidates as generators
from papi.data.cache import Wanted, read_images

Line = tuple[str, float, float, float, str]

SAMPLES, CLASSES = 50_000, 100
FILES = 1_500
MEMORY_FILES, MEMORY_SIDE = 60_000, 32
MEMORY_LIMIT = 600  # MB


def fastest(first: Callable[[], object], second: Callable[[], object], times: int) -> tuple[float, float]:
    """Seconds of each, in turns, so that a busy moment of the machine strikes both alike."""
    best = [float("inf"), float("inf")]
    for _ in range(times):
        for k, work in enumerate((first, second)):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best[0], best[1]


def uniform_loop(labels: np.ndarray, flip_rate: float) -> np.ndarray:
    """Element by element, as one would write it first."""
    random = np.random.RandomState(0)
    sets = np.zeros((len(labels), CLASSES), bool)
    for i, label in enumerate(labels):
        for j in range(CLASSES):
            sets[i, j] = j == label or random.uniform() < flip_rate
    return sets


def generation() -> Line:
    """The loop does a tenth of the samples; its time is counted tenfold."""
    labels = np.arange(SAMPLES) % CLASSES
    part = labels[: SAMPLES // 10]
    reference, ours = fastest(
        lambda: uniform_loop(part, 0.1), lambda: generators.uniform(labels, CLASSES, 0.1, 0), times=3
    )
    return (f"candidate sets, {SAMPLES:,} x {CLASSES}", 10 * reference, ours, 10 * reference / ours, ">= 20")


def write_files(folder: Path, count: int, side: int) -> list[Path]:
    """Photographs of a sort: smooth, with some noise, as JPEG."""
    random = np.random.default_rng(0)
    folder.mkdir()
    files = [folder / f"{k:05}.jpg" for k in range(count)]
    for k, file in enumerate(files):
        coarse = random.integers(0, 256, (8, 8, 3), np.uint8)
        image = Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)
        image.save(file, quality=90)
        if k >= 200:  # the rest are copies under other names: their content takes the same time
            break
    for k, file in enumerate(files[201:], 201):
        file.write_bytes(files[k % 200].read_bytes())
    return files


def building_and_reading(work: Path) -> list[Line]:
    """The cache of a folder of images: built with one process and with two, then read again."""
    files = write_files(work / "images", FILES, 400)

    def build(processes: int) -> None:
        with tempfile.TemporaryDirectory(dir=work) as cache, patch.dict(os.environ, PAPI_CACHE=cache):
            read_images(files, Wanted(64), processes=processes)

    build(2)  # worker processes stay alive: their start is paid once
    one, two = fastest(lambda: build(1), lambda: build(2), times=3)
    with patch.dict(os.environ, PAPI_CACHE=str(work / "kept")):
        read_images(files, Wanted(64))
        _, again = fastest(lambda: None, lambda: read_images(files, Wanted(64)).sum(), times=3)
    return [
        (f"cache of {FILES:,} images, 1 process : 2", one, two, one / two, ">= 1.6"),
        (f"cache of {FILES:,} images, built : read again", two, again, two / again, ">= 20"),
    ]


def build_for_memory(folder: str) -> None:
    """What the child process does whose memory is measured."""
    from joblib.externals.loky import get_reusable_executor

    read_images(sorted(Path(folder).iterdir()), Wanted(MEMORY_SIDE), processes=2)
    get_reusable_executor().shutdown(wait=True)  # only then are the workers counted
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print((own + 2 * child) // 1024)


def peak_memory(work: Path) -> Line:
    """Of the process that builds the cache and its two workers; the ratio is what is left below the limit."""
    write_files(work / "many", MEMORY_FILES, 48)
    environment = os.environ | {"PAPI_CACHE": str(work / "large")}
    command = [sys.executable, __file__, "--memory", str(work / "many")]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    peak = float(said.split()[-1])
    return (
        f"peak memory, cache of {MEMORY_FILES:,} images (MB, limit : ours)",
        MEMORY_LIMIT,
        peak,
        MEMORY_LIMIT / peak,
        ">= 1",
    )


def measure() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        yield generation()
        yield from building_and_reading(Path(folder))
        yield peak_memory(Path(folder))


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        build_for_memory(sys.argv[2])
        return
    print(f"{'what':55} {'reference':>10} {'ours':>10} {'ratio':>8}  target")
    for item, reference, ours, ratio, target in measure():
        print(f"{item:55} {reference:10.3f} {ours:10.3f} {ratio:8.2f}  {target}", flush=True)


if __name__ == "__main__":
    main()
