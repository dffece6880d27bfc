"""The cache of an image folder: building it with two processes instead of one, reading it again, and its memory use."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image

from benchmarks.measure import Line, in_turns, speedup
from papi.data.images.cache import Wanted, read_images

FILES = 1_500
MEMORY_FILES, MEMORY_SIDE = 60_000, 32
MEMORY_LIMIT = 600  # MB


def write_files(folder: Path, count: int, side: int) -> list[Path]:
    """Synthetic photos as JPEG. Most are copies under other names, which take the same time to read."""
    random = np.random.default_rng(0)
    folder.mkdir()
    files = [folder / f"{k:05}.jpg" for k in range(count)]
    for file in files[:200]:
        coarse = random.integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC).save(file, quality=90)
    for k, file in enumerate(files[200:]):
        file.write_bytes(files[k % 200].read_bytes())
    return files


def building_and_reading(work: Path) -> Iterator[Line]:
    files = write_files(work / "images", FILES, 400)

    def build(processes: int) -> None:
        with tempfile.TemporaryDirectory(dir=work) as cache, patch.dict(os.environ, PAPI_CACHE=cache):
            read_images(files, Wanted(64), processes=processes)

    build(2)  # worker processes stay alive, so they start only once
    one, two = in_turns([lambda: build(1), lambda: build(2)], times=3)
    yield speedup(f"building a cache of {FILES:,} images, 2 processes vs. 1", (one, two))
    with patch.dict(os.environ, PAPI_CACHE=str(work / "kept")):
        read_images(files, Wanted(64))
        (again,) = in_turns([lambda: read_images(files, Wanted(64)).sum()], times=3)
    yield speedup(f"cache of {FILES:,} images, reading vs. building", (two, again))


def peak_memory(work: Path) -> Line:
    """Peak memory of the process that builds the cache and its two workers, as a share of the limit."""
    write_files(work / "many", MEMORY_FILES, 48)
    environment = os.environ | {"PAPI_CACHE": str(work / "large")}
    command = [sys.executable, "-m", "benchmarks.cache_memory", str(work / "many"), str(MEMORY_SIDE)]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    peak = float(said.split()[-1])
    item = f"peak memory, building a cache of {MEMORY_FILES:,} images, vs. limit"
    return Line(item, MEMORY_LIMIT, peak, peak / MEMORY_LIMIT, 1, at_most=True, unit="MB")


def measure(quick: bool) -> Iterator[Line]:
    if quick:
        return
    with tempfile.TemporaryDirectory() as folder:
        yield from building_and_reading(Path(folder))
        yield peak_memory(Path(folder))
