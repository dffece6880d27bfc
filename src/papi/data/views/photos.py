"""Weak and strong views of photos of any size, each with its own draws: squares `(B, 3, size, size) uint8`.

`plain` is the square in the middle. `weak` is a random part of the photo, resized, and mirrored half of the time.
`strong` begins with such a part of its own; then AutoAugment's policy for ImageNet and a random rectangle of grey.
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

SMALLEST_PART = 0.25  # of a photo's area, in a weak or strong view
POLICY = "imagenet"
ERASED = (0.02, 1 / 3)  # of the area of a strong view: the least and the most
ERASED_ASPECT = 3.0  # a rectangle is at most so many times as long as it is wide
GREY = 128  # what is erased becomes this, as what AutoAugment moves in from outside
# Torch resizes parts many times as fast as Pillow, with two of its filters; the nearest of them stands for the others.
_MODES = {"nearest": "nearest-exact", "bilinear": "bilinear", "box": "bilinear", "hamming": "bilinear"}


class PhotoSet(Protocol):
    """Photos by number."""

    @property
    def preparation(self) -> Preparation:
        """How an encoder wants them."""

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
        """The middle of each photo."""
        squares = torch.empty(len(photos), 3, self.size, self.size, dtype=torch.uint8)
        for square, photo in zip(squares, photos, strict=True):
            top, left = ((length - self.size) // 2 for length in photo.shape[1:])
            square.copy_(torch.from_numpy(photo[:, top : top + self.size, left : left + self.size]))
        return squares

    def _random_parts(self, photos: Sequence[np.ndarray], draws: Draws) -> Tensor:
        """A random part of each photo, of any size from `SMALLEST_PART` on; half of them are mirrored."""
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
    """Makes the views of photos that are given by their numbers `(B,)` in a set."""

    def __init__(self, photos: PhotoSet) -> None:
        self.read = _Reader(photos)
        self.make = PhotoViews(photos.preparation)

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """`(B, 3, size, size) uint8`, on the device of the numbers."""
        return self.make(name, self.read(samples), draws).to(samples.device)


class NormalisePhotos:
    """Numbers of photos, or views of them, to the network's input; of a photo given by its number, the plain view."""

    def __init__(self, photos: PhotoSet, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self.read = _Reader(photos)
        self.make = PhotoViews(photos.preparation)
        self.normalise = NormaliseImages(mean, std, device)

    def __call__(self, samples: Tensor, /) -> Tensor:
        """`(B, 3, size, size) float32` from numbers `(B,)`, or from views `(B, 3, size, size) uint8`."""
        views = self.make.plain(self.read(samples)).to(samples.device) if samples.ndim == 1 else samples
        return self.normalise(views)


class _Reader:
    """Reads photos by their numbers in several threads. It remembers the last ones: a batch has several views."""

    def __init__(self, photos: PhotoSet) -> None:
        self.photos = photos
        self.pool = ThreadPoolExecutor()
        self.last: tuple[list[int], list[np.ndarray]] = ([], [])

    def __call__(self, samples: Tensor) -> list[np.ndarray]:
        numbers = samples.tolist()
        if numbers != self.last[0]:
            self.last = (numbers, list(self.pool.map(self.photos.__getitem__, numbers)))
        return self.last[1]
