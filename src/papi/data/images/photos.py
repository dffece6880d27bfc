"""Photos of any size for an encoder: each keeps its aspect ratio and is decoded on access."""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
from PIL import Image

from papi.data.images.decode import ImageError, decode_photo
from papi.errors import UserError
from papi.files.reading import read_bytes
from papi.networks.preparation import Preparation

FORMAT = 1  # version of the pixels: increase it when decoding changes

Source = Path | Image.Image  # a file, or a photo that is already in memory


class Photos:
    """A set of photos: `photos[i]` is `(3, h, w) uint8`, with the shorter side of the encoder's preparation (`kept`).

    A photo that cannot be read raises UserError. Reading is thread-safe.
    """

    def __init__(self, sources: Sequence[Source], preparation: Preparation) -> None:
        self.sources, self.preparation = tuple(sources), preparation

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, place: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, place: slice | np.ndarray) -> "Photos": ...

    def __getitem__(self, place: int | slice | np.ndarray) -> "np.ndarray | Photos":
        """One photo; or a subset by slice, positions or mask, without decoding."""
        if isinstance(place, slice | np.ndarray):
            chosen = np.arange(len(self.sources))[place]
            return Photos([self.sources[number] for number in chosen], self.preparation)
        return self.pixels(place)

    def pixels(self, number: int) -> np.ndarray:
        """One photo, `(3, h, w) uint8`."""
        try:
            return decode_photo(self.sources[number], self.preparation)
        except ImageError as error:
            raise UserError(f"{self.name(number)} {error}: replace the photo, or remove its row.") from error

    def name(self, number: int) -> str:
        """The name of a photo in messages."""
        source = self.sources[number]
        return str(source) if isinstance(source, Path) else f"photo {number}"

    def state(self, number: int) -> bytes:
        """16 bytes that change whenever the pixels may have changed.

        A file is not opened: its path, size and modification time identify its content.
        """
        source = self.sources[number]
        if not isinstance(source, Path):
            return content_of(self[number])
        try:
            found = os.stat(source)
        except OSError as error:
            raise UserError(f"{source} cannot be read ({error.strerror}): restore it, or remove its row.") from error
        shape = (self.preparation.kept, self.preparation.interpolation)
        told = (FORMAT, os.path.abspath(source), found.st_size, found.st_mtime_ns, *shape)
        return _digest(repr(told).encode("utf-8", "surrogateescape"))

    def digest(self, most: int) -> bytes:
        """A 32-byte hash of all photos in order, independent of the location of their files.

        If the files have more than `most` bytes, it includes the content of every n-th file and the sizes of all.
        """
        sizes = [os.stat(source).st_size if isinstance(source, Path) else 0 for source in self.sources]
        digest = hashlib.sha256(repr((FORMAT, self.preparation.kept, self.preparation.interpolation, sizes)).encode())
        for number in range(0, len(self.sources), 1 + sum(sizes) // most):
            source = self.sources[number]
            digest.update(read_bytes(source, sys.maxsize) if isinstance(source, Path) else content_of(self[number]))
        return digest.digest()


def content_of(photo: np.ndarray) -> bytes:
    """A 16-byte hash of the pixels of one photo `(3, h, w) uint8`, independent of its source."""
    return _digest(repr(photo.shape).encode(), np.ascontiguousarray(photo.transpose(1, 2, 0)).data)


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()
