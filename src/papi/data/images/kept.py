"""Photos that are used many times: decoded once into one cache file, and then read from there.

The file is read, not memory-mapped, because mapped pages would count as memory of the process until they include all
photos. It contains the pixels of all photos one after another, then their heights and widths.
"""

import errno
import hashlib
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from papi.data.dataset import Progress, Report, refuse, silent
from papi.data.images.cache import Faults, in_order, tell
from papi.data.images.decode import ImageError, decode_photo
from papi.data.images.photos import Photos
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.places import cache_dir
from papi.files.reading import plain_file
from papi.networks.preparation import Preparation

_SIZES = np.dtype("<u4")
_FEW = 200  # up to this number, photos are decoded faster than processes start


class _FaultyError(Exception):
    """Some photos could not be decoded, so the file is not cached."""


class KeptPhotos(Photos):
    """Photos whose pixels are in a cache file. Reading is thread-safe; subsets are decoded from their own files."""

    def __init__(self, photos: Photos, file: Path, sizes: np.ndarray) -> None:
        super().__init__(photos.sources, photos.preparation)
        self.sizes = sizes  # (N, 2): heights and widths
        self.starts = _starts(sizes)
        self._descriptor = os.open(file, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)

    def pixels(self, number: int) -> np.ndarray:
        """One photo, `(3, h, w) uint8`."""
        height, width = self.sizes[number].tolist()
        content = bytearray(3 * height * width)
        if os.preadv(self._descriptor, [content], int(self.starts[number])) != len(content):
            raise UserError(
                f"the cache of {self.name(number)} was truncated during the run: run the same command again."
            )
        photo: np.ndarray = np.frombuffer(content, np.uint8).reshape(height, width, 3).transpose(2, 0, 1)
        return photo


def keep(
    photos: Photos, *, processes: int | None = None, report: Report = refuse, progress: Progress = silent
) -> Photos:
    """The same photos from the cache, which is filled first if needed. Photos in memory are returned unchanged.

    Photos that cannot be read are reported. If `report` returns, nothing is cached.
    """
    files = [source for source in photos.sources if isinstance(source, Path)]
    if len(files) < len(photos):
        return photos
    states = b"".join(photos.state(number) for number in range(len(photos)))
    file = cache_dir() / "photos" / f"{hashlib.sha256(states).hexdigest()[:32]}.pixels"
    sizes = _sizes(file, len(files))
    if sizes is None:
        workers = 1 if len(files) < _FEW else processes or os.cpu_count() or 1
        with suppress(_FaultyError):
            _build(file, files, photos.preparation, workers, report, progress)
        sizes = _sizes(file, len(files))
        if sizes is None:
            return photos
    return KeptPhotos(photos, file, sizes)


def decode_photos(files: Sequence[Path], preparation: Preparation) -> tuple[list[np.ndarray], Faults]:
    """Decode some photos in one process, skipping those that cannot be read."""
    photos: list[np.ndarray] = []
    faults: Faults = []
    for position, file in enumerate(files):
        try:
            photos.append(decode_photo(file, preparation).transpose(1, 2, 0))
        except ImageError as error:
            faults.append((position, str(error)))
    return photos, faults


def _build(
    file: Path, files: list[Path], preparation: Preparation, workers: int, report: Report, progress: Progress
) -> None:
    """Write the file atomically."""
    sizes: list[tuple[int, ...]] = []
    complete = True
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            for start, (photos, faults) in in_order(decode_photos, files, (preparation,), workers):
                tell(files, start, faults, report)
                complete &= not faults
                for photo in photos:
                    stream.write(np.ascontiguousarray(photo).data)
                    sizes.append(photo.shape[:2])
                progress("decoding photos", len(sizes), len(files))
            if not complete:
                raise _FaultyError
            stream.write(np.array(sizes, _SIZES).tobytes())
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise UserError(
            f"the cache {file.parent} cannot take {len(files):,} decoded photos ({what}): free disk space, or set the "
            "environment variable PAPI_CACHE to another folder."
        ) from error


def _sizes(file: Path, count: int) -> np.ndarray | None:
    """Heights and widths `(N, 2)`; None if the file is missing or incomplete."""
    length = count * 2 * _SIZES.itemsize
    try:
        with open(plain_file(file, most=2**63), "rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, end - length))
            content = stream.read(length)
    except OSError:
        return None
    if len(content) < length:
        return None
    sizes = np.frombuffer(content, _SIZES).reshape(count, 2)
    return sizes if int(_starts(sizes)[-1]) + length == end else None


def _starts(sizes: np.ndarray) -> np.ndarray:
    """The offset of each photo, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(3 * sizes.prod(1, dtype=np.int64))])
