"""Weak and strong views of whole batches of `uint8` images `(B, C, H, W)`, with separate random numbers per image.

All random numbers of a batch are drawn first, as arrays; then a few tensor operations make the views on the device of
the images. Views stay `uint8`; `NormaliseImages` converts them to the network's input.
"""

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from papi.data.dataset import ViewRecipe
from papi.data.views.autoaugment import AutoAugment
from papi.randomness import Draws

_CROP_TRIES = 10


class ImageViews:
    """Makes the views of images by name: `weak`, `strong` or `plain` (unchanged)."""

    def __init__(self, recipe: ViewRecipe) -> None:
        self.recipe = recipe
        self.policy = AutoAugment(recipe.policy) if recipe.policy else None

    def __call__(self, name: str, images: Tensor, draws: Draws, /) -> Tensor:
        """The view `name` of `(B, C, H, W) uint8`."""
        if name == "plain":
            return images
        if self.recipe.resized_crop:
            images = resized_crop(images, self.recipe.resized_crop, draws)
        images = flip_and_crop(images, self.recipe, draws)
        if name == "weak":
            return images
        if self.policy:
            images = self.policy(images, draws)
        # After the policy, so that the hole stays black.
        return cutout(images, self.recipe.cutout, draws) if self.recipe.cutout else images


def flip_and_crop(images: Tensor, recipe: ViewRecipe, draws: Draws) -> Tensor:
    """Flip, then crop with reflected borders, in one look-up of source pixels."""
    if not recipe.flip and not recipe.crop_padding:
        return images
    count, channels, height, width = images.shape
    rows = _crop_positions(count, height, recipe.crop_padding, draws)
    columns = _crop_positions(count, width, recipe.crop_padding, draws)
    if recipe.flip:
        mirrored = draws.random(count) < 0.5
        columns[mirrored] = width - 1 - columns[mirrored]
    starts, offsets = (torch.from_numpy(each).to(images.device) for each in (rows * width, columns))
    source = (starts[:, :, None] + offsets[:, None, :]).view(count, 1, -1)
    pixels = images.reshape(count, channels, -1).gather(2, source.expand(-1, channels, -1))
    return pixels.view(count, channels, height, width)


def _crop_positions(count: int, size: int, padding: int, draws: Draws) -> np.ndarray:
    """The source row (or column) of each target row of each image: a random shift, reflected at the borders."""
    return _reflected(size, padding)[padding + draws.integers(-padding, padding + 1, count)]


@cache
def _reflected(size: int, padding: int) -> np.ndarray:
    """`(2 * padding + 1, size)`: the source positions for each shift from -`padding` to `padding`."""
    position = np.abs(np.arange(size) + np.arange(-padding, padding + 1)[:, None])
    reflected: np.ndarray = np.where(position >= size, 2 * (size - 1) - position, position)
    return reflected


def resized_crop(images: Tensor, size: int, draws: Draws) -> Tensor:
    """A random part of each image, with 8 to 100 % of its area and an aspect ratio of 3:4 to 4:3, resized to `size`.

    Crops have whole pixels. They are resized bilinearly with antialiasing, as in Pillow and torchvision.
    """
    height, width = images.shape[2:]
    sides = np.array([height, width])
    length = np.round(crop_shares(len(images), height, width, 0.08, draws) * sides).clip(min=1)
    start = np.floor(draws.uniform(0, 1, length.shape) * (sides - length + 1))
    down, across = (
        torch.from_numpy(_resizing(start[:, axis], length[:, axis], int(sides[axis]), size)).to(images.device)
        for axis in (0, 1)
    )
    pixels = down[:, None] @ images.float() @ across[:, None].transpose(2, 3)
    return pixels.round().clamp(0, 255).to(torch.uint8)


def _resizing(start: np.ndarray, length: np.ndarray, side: int, size: int) -> np.ndarray:
    """`(B, size, side) float32`: the weight of each pixel of a row in each pixel of its crop, resized to `size`.

    A crop begins at `start` `(B,)` and has `length` `(B,)` pixels. Each new pixel is a mean around its position in the
    old row, with weights that fall linearly to zero: over one old pixel, or over one new pixel if that is larger.
    """
    scale = length / size
    centre = start[:, None] + (np.arange(size) + 0.5) * scale[:, None]
    pixel = np.arange(side)
    distance = np.abs(pixel + 0.5 - centre[:, :, None]) / np.maximum(scale, 1)[:, None, None]
    inside = (pixel >= start[:, None]) & (pixel < (start + length)[:, None])
    weights = np.clip(1 - distance, 0, None) * inside[:, None]
    shares: np.ndarray = (weights / weights.sum(2, keepdims=True)).astype(np.float32)
    return shares


def crop_shares(
    count: int, height: int | np.ndarray, width: int | np.ndarray, smallest: float, draws: Draws
) -> np.ndarray:
    """`(B, 2)`: height and width of a random crop of each image, as fractions of the image's own.

    A crop has a fraction of the area from `smallest` to 1. Image sides are the same for all, or `(B, 1)` each.
    """
    area = draws.uniform(smallest, 1, (count, _CROP_TRIES))
    aspect = np.exp(draws.uniform(np.log(3 / 4), np.log(4 / 3), (count, _CROP_TRIES)))
    # Use the first attempt that fits, or the whole image if none does.
    shares = np.stack([np.sqrt(area / aspect * (width / height)), np.sqrt(area * aspect * (height / width))], 2)
    fits: np.ndarray = np.all(shares <= 1, axis=2)
    return np.where(fits.any(1, keepdims=True), shares[np.arange(count), fits.argmax(1)], 1.0)


def cutout(images: Tensor, side: int, draws: Draws) -> Tensor:
    """Blacken one square per image, centred on any pixel and clipped at the border (DeVries & Taylor, 2017)."""
    count, _, height, width = images.shape
    hit = [
        torch.from_numpy(_within(draws.integers(0, size, count), size, side)).to(images.device)
        for size in (height, width)
    ]
    kept = ~(hit[0][:, :, None] & hit[1][:, None, :])
    return images * kept[:, None].to(torch.uint8)  # twenty times as fast as masked_fill


def _within(centre: np.ndarray, size: int, side: int) -> np.ndarray:
    """`(B, size) bool`: positions inside the window of `side` pixels around each centre."""
    start = centre[:, None] - side // 2
    position = np.arange(size)
    inside: np.ndarray = (position >= start) & (position < start + side)
    return inside


class NormaliseImages:
    """`uint8` pixels to the network's input: (x / 255 - mean) / std by channel, channels last in memory.

    Images that are stored larger than the network's input (for resized crops) are resized to `size`, (height, width).
    """

    def __init__(
        self,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: torch.device,
        size: tuple[int, ...] | None = None,
    ) -> None:
        self.size = size
        self.scale = torch.tensor([1 / (255 * s) for s in std], device=device)
        self.shift = torch.tensor([-m / s for m, s in zip(mean, std, strict=True)], device=device)

    def __call__(self, images: Tensor, /) -> Tensor:
        """`(B, C, H, W) float32` from `(B, C, H, W) uint8`, on the device of the network."""
        images = images.to(self.scale.device)
        if self.size is not None and images.shape[2:] != self.size:
            images = interpolate(images.float(), size=self.size, mode="bilinear", antialias=True)
        count, channels, height, width = images.shape
        # Channels are moved last first. The arithmetic then runs through memory in order, which takes half the time of
        # rearranging its results.
        pixels = torch.empty(count, height, width, channels, device=images.device)
        for channel, plane in enumerate(images.unbind(1)):
            pixels[..., channel] = plane
        flat = pixels.view(count, height * width * channels)  # -1 would be ambiguous for an empty batch
        torch.addcmul(self.shift.repeat(height * width), flat, self.scale.repeat(height * width), out=flat)
        return pixels.permute(0, 3, 1, 2)
