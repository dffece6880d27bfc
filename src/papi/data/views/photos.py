"""Weak and strong views of photos of any size, each with its own random numbers: squares `(B, 3, size, size) uint8`.

`plain` is the centre square. `weak` is a random resized crop, flipped half of the time. `strong` is a separate such
crop, followed by AutoAugment's policy for ImageNet and random erasing with grey.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from papi.data.views.autoaugment import AutoAugment
from papi.data.views.images import NormaliseImages, crop_shares
from papi.networks.preparation import Preparation
from papi.randomness import Draws

SMALLEST_PART = 0.25  # smallest crop of a weak or strong view, as a fraction of the photo's area
POLICY = "imagenet"
ERASED = (0.02, 1 / 3)  # range of the erased fraction of a strong view
ERASED_ASPECT = 3.0  # largest aspect ratio of an erased rectangle
GREY = 128  # of erased pixels, and of pixels from outside in AutoAugment
# Torch resizes crops many times faster than Pillow, but has only two of its filters; the closest replaces the others.
_MODES = {"nearest": "nearest-exact", "bilinear": "bilinear", "box": "bilinear", "hamming": "bilinear"}


class PhotoSet(Protocol):
    """Photos by index."""

    @property
    def preparation(self) -> Preparation:
        """How they are prepared for the encoder."""

    def __getitem__(self, number: int, /) -> np.ndarray:
        """`(3, h, w) uint8`."""


class PhotoViews:
    """Makes the views of photos `(3, h, w) uint8` by name: `weak`, `strong` or `plain`."""

    def __init__(self, preparation: Preparation) -> None:
        self.size = preparation.size
        self.mode = _MODES.get(preparation.interpolation, "bicubic")
        self.policy = AutoAugment(POLICY)

    def __call__(self, name: str, photos: Sequence[np.ndarray], draws: Draws, /) -> Tensor:
        """The view `name` of each photo: `(B, 3, size, size) uint8`."""
        if name == "plain":
            return self.plain(photos)
        images = self._random_parts(photos, draws)
        if name == "weak":
            return images
        return erase(self.policy(images, draws), draws)

    def plain(self, photos: Sequence[np.ndarray]) -> Tensor:
        """The centre square of each photo."""
        squares = torch.empty(len(photos), 3, self.size, self.size, dtype=torch.uint8)
        for square, photo in zip(squares, photos, strict=True):
            top, left = ((length - self.size) // 2 for length in photo.shape[1:])
            square.copy_(torch.from_numpy(photo[:, top : top + self.size, left : left + self.size]))
        return squares

    def _random_parts(self, photos: Sequence[np.ndarray], draws: Draws) -> Tensor:
        """A random crop of each photo, with at least `SMALLEST_PART` of its area; half of them are flipped."""
        count = len(photos)
        sides = np.array([photo.shape[1:] for photo in photos]).reshape(count, 2)
        share = crop_shares(count, sides[:, :1], sides[:, 1:], SMALLEST_PART, draws)
        parts = np.clip(np.rint(share * sides), 1, sides).astype(np.int64)
        starts = (draws.random((count, 2)) * (sides - parts + 1)).astype(np.int64)
        mirrored = draws.random(count) < 0.5
        images = torch.empty(count, 3, self.size, self.size, dtype=torch.uint8)
        antialias = self.mode != "nearest-exact"
        for k, (photo, (top, left), (height, width)) in enumerate(zip(photos, starts, parts, strict=True)):
            part = torch.from_numpy(photo[:, top : top + height, left : left + width])[None]
            image = interpolate(part, size=(self.size, self.size), mode=self.mode, antialias=antialias)
            images[k] = image[0].flip(2) if mirrored[k] else image[0]
        return images


def erase(images: Tensor, draws: Draws) -> Tensor:
    """Make one rectangle of each image grey (random erasing, Zhong et al., AAAI 2020). `(B, C, H, W) uint8`."""
    count, _, height, width = images.shape
    area = draws.uniform(*ERASED, count) * height * width
    aspect = np.exp(draws.uniform(-np.log(ERASED_ASPECT), np.log(ERASED_ASPECT), count))
    places = draws.random((count, 2))
    hit = []
    for size, length, place in zip((height, width), (area * aspect, area / aspect), places.T, strict=True):
        length = np.clip(np.rint(np.sqrt(length)), 1, size)
        start = np.floor(place * (size - length + 1))[:, None]
        position = np.arange(size)
        hit.append(torch.from_numpy((position >= start) & (position < start + length[:, None])).to(images.device))
    erased = (hit[0][:, :, None] & hit[1][:, None, :])[:, None].to(torch.uint8)
    return images * (1 - erased) + GREY * erased


class NumberedViews:
    """Makes the views of photos, given by their indices `(B,)` in a set."""

    def __init__(self, photos: PhotoSet) -> None:
        self.read = _Reader(photos)
        self.make = PhotoViews(photos.preparation)

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """`(B, 3, size, size) uint8`, on the device of the indices."""
        return self.make(name, self.read(samples), draws).to(samples.device)


class NormalisePhotos:
    """Converts views of photos, or indices of photos (by their plain view), to the network's input."""

    def __init__(self, photos: PhotoSet, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self.read = _Reader(photos)
        self.make = PhotoViews(photos.preparation)
        self.normalise = NormaliseImages(mean, std, device)

    def __call__(self, samples: Tensor, /) -> Tensor:
        """`(B, 3, size, size) float32` from indices `(B,)`, or from views `(B, 3, size, size) uint8`."""
        views = self.make.plain(self.read(samples)).to(samples.device) if samples.ndim == 1 else samples
        return self.normalise(views)


class _Reader:
    """Reads photos by index in several threads. It keeps the last batch, because a batch has several views."""

    def __init__(self, photos: PhotoSet) -> None:
        self.photos = photos
        self.pool = ThreadPoolExecutor()
        self.last: tuple[list[int], list[np.ndarray]] = ([], [])

    def __call__(self, samples: Tensor) -> list[np.ndarray]:
        numbers = samples.tolist()
        if numbers != self.last[0]:
            self.last = (numbers, list(self.pool.map(self.photos.__getitem__, numbers)))
        return self.last[1]
