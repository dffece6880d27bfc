"""Caches decoded images: several processes decode them once into an array on disk that later runs memory-map."""

import errno
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from papi.data.dataset import FileProblem, Progress, Report, refuse, silent
from papi.data.images.decode import ImageError, Shape, Target, decode, probe
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.npz import map_npy
from papi.files.places import cache_dir

FORMAT = 2  # version of the pixels: increase it when decoding changes
SMALL = 1000  # fewer images are decoded faster than processes start; they stay in memory and are not cached
DEFAULT_SIDE = 64  # of large images, or images of different sizes, unless the user chooses another
LARGEST_KEPT = 96  # images of one common shape with no side longer than this are not resized
_CHUNK = 64

T = TypeVar("T")
Faults = list[tuple[int, str]]  # positions in a chunk of files, and what is wrong with them


class _FaultyError(Exception):
    """Some images could not be decoded, so the array is not cached."""


class Wanted(NamedTuple):
    """How images are to be decoded."""

    side: int | None = None  # square images of this side; None decides from the files
    centre: int | None = None  # only the centre square of this side
    colour: bool = False  # three channels even if all images are grey


def read_images(
    files: Sequence[Path],
    wanted: Wanted,
    *,
    processes: int | None = None,
    report: Report = refuse,
    progress: Progress = silent,
) -> np.ndarray:
    """All files as `(N, C, H, W) uint8`: a small set in memory, a large one from the cache, which is built if needed.

    Images that cannot be read are reported. If `report` returns, they stay black and nothing is cached.
    """
    faults: list[str] = []

    def remember(problem: str) -> None:
        if problem not in faults:  # decoding would repeat a problem of the header
            faults.append(problem)
            report(problem)

    if len(files) < SMALL:
        target = find_target(files, wanted, 1, remember, progress)
        images = np.zeros((len(files), target.channels, target.height, target.width), np.uint8)
        for start, part in _decoded(files, target, 1, remember, progress):
            images[start : start + len(part)] = part
        return images
    path = cache_dir() / "images" / f"{fingerprint(files, wanted)}.npy"
    cached = _open(path, len(files))
    if cached is not None:
        return cached
    workers = processes or os.cpu_count() or 1
    target = find_target(files, wanted, workers, remember, progress)
    shape = (len(files), target.channels, target.height, target.width)
    if not faults:
        _build(path, shape, _decoded(files, target, workers, remember, progress), faults)
    cached = _open(path, len(files))
    return np.zeros(shape, np.uint8) if cached is None else cached


def fingerprint(files: Sequence[Path], wanted: Wanted) -> str:
    """A name for the pixels of these files: a hash of their paths, sizes and modification times, and of `wanted`."""
    digest = hashlib.sha256(repr((FORMAT, DEFAULT_SIDE, LARGEST_KEPT, tuple(wanted))).encode())
    for file in files:
        state = os.stat(file)
        place = os.path.abspath(file)  # extracted files may share their time, and uncompressed ones their size
        digest.update(f"{place}\0{state.st_size}\0{state.st_mtime_ns}\n".encode("utf-8", "replace"))
    return digest.hexdigest()[:32]


def find_target(files: Sequence[Path], wanted: Wanted, processes: int, report: Report, progress: Progress) -> Target:
    """The shape for all images, from their headers: grey if all are, and their own size if it is small and common."""
    shapes: set[Shape] = set()
    for start, (found, faults) in in_order(probe_chunk, files, (), processes):
        shapes |= found
        tell(files, start, faults, report)
        progress("looking at images", start, len(files))
    grey = bool(shapes) and all(shape.grey for shape in shapes) and not wanted.colour
    channels: Literal[1, 3] = 1 if grey else 3
    sizes = {(shape.height, shape.width) for shape in shapes}
    if wanted.side is None and len(sizes) == 1:
        height, width = sizes.pop()
        if max(height, width) <= LARGEST_KEPT:
            return Target(height, width, channels, wanted.centre)
    side = wanted.side or DEFAULT_SIDE
    return Target(side, side, channels, wanted.centre)


def find_faults(files: Sequence[Path], report: Report, progress: Progress) -> None:
    """Check images that are decoded later, and report those that cannot be read.

    Only headers are read, because a damaged image behind a good header stops the run later, too. If `report` returns,
    such an image has to be found now, so images are decoded, at the smallest size.
    """
    workers = 1 if len(files) < SMALL else os.cpu_count() or 1
    work, how = (probe_chunk, ()) if report is refuse else (decode_chunk, (Target(8, 8, 3),))
    for start, (_, faults) in in_order(work, files, how, workers):
        tell(files, start, faults, report)
        progress("looking at images", start, len(files))


def probe_chunk(files: Sequence[Path]) -> tuple[set[Shape], Faults]:
    """The different shapes among some files, and the files that cannot be used."""
    shapes: set[Shape] = set()
    faults: Faults = []
    for position, file in enumerate(files):
        try:
            shapes.add(probe(file))
        except ImageError as error:
            faults.append((position, str(error)))
    return shapes, faults


def decode_chunk(files: Sequence[Path], target: Target) -> tuple[np.ndarray, Faults]:
    """Decode some images in one process. Those that cannot be decoded stay black and are listed."""
    images = np.zeros((len(files), target.channels, target.height, target.width), np.uint8)
    faults: Faults = []
    for position, file in enumerate(files):
        try:
            images[position] = decode(file, target)
        except ImageError as error:
            faults.append((position, str(error)))
    return images, faults


def _decoded(
    files: Sequence[Path], target: Target, processes: int, report: Report, progress: Progress
) -> Iterator[tuple[int, np.ndarray]]:
    for start, (images, faults) in in_order(decode_chunk, files, (target,), processes):
        tell(files, start, faults, report)
        yield start, images
        progress("decoding images", start + len(images), len(files))


def in_order(
    work: Callable[..., T], files: Sequence[Path], arguments: tuple[object, ...], processes: int
) -> Iterator[tuple[int, T]]:
    """Run `work` on chunks of files in processes. Results are in order, and few are computed ahead to save memory."""
    starts = range(0, len(files), _CHUNK)
    chunks = (files[start : start + _CHUNK] for start in starts)
    if processes == 1:
        yield from zip(starts, (work(chunk, *arguments) for chunk in chunks), strict=True)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=processes, return_as="generator", pre_dispatch="3*n_jobs", max_nbytes=None)
    results = parallel(delayed(work)(chunk, *arguments) for chunk in chunks)
    try:
        yield from zip(starts, results, strict=True)
    finally:
        with warnings.catch_warnings():  # joblib warns about unfinished chunks after an error
            warnings.simplefilter("ignore")
            results.close()


def tell(files: Sequence[Path], start: int, faults: Faults, report: Report) -> None:
    """Report the problems of files in the chunk that begins at `start`."""
    for position, fault in faults:
        file = files[start + position]
        report(FileProblem(f"{file} {fault}: replace the image, or remove its row.", file))


def _open(path: Path, count: int) -> np.ndarray | None:
    """The cached array; None if it is missing or damaged."""
    try:
        images = map_npy(path)
    except (OSError, ValueError):
        return None
    return images if images.ndim == 4 and len(images) == count and images.dtype == np.uint8 else None


def _build(path: Path, shape: tuple[int, ...], parts: Iterator[tuple[int, np.ndarray]], faults: list[str]) -> None:
    """Write the parts to a file atomically. After an error or a fault, nothing is left."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written, not memory-mapped: on a full disk, a write raises an error, but a mapped page kills the process.
        with suppress(_FaultyError), replacing(path) as stream:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            for _, part in parts:
                stream.write(part.data)
            if faults:
                raise _FaultyError
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise UserError(
            f"the cache {path.parent} cannot take {np.prod(shape) / 1e6:.0f} MB of decoded images ({what}): "
            "free disk space, or set the environment variable PAPI_CACHE to another folder."
        ) from error
