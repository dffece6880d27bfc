"""Operations on pixel values, for whole batches of `uint8` images `(B, C, H, W)` with C = 1 or 3.

Each image has its own parameter, given as a `float64` array `(B,)`; the pixels are changed on the images' device.
Results are bit-equal to Pillow's `ImageOps` and `ImageEnhance`, so the arithmetic is Pillow's: blends are in `float32`
and truncated, not rounded. (On devices without `float64`, autocontrast may be one grey level off.)
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def brightness(images: Tensor, factors: np.ndarray) -> Tensor:
    """Blend with black: 0 is black, 1 changes nothing."""
    return images.float().mul_(_per_image(factors, np.float32, images)).clamp_(0, 255).to(torch.uint8)


def contrast(images: Tensor, factors: np.ndarray) -> Tensor:
    """Blend with the image's mean, rounded to a grey level: 0 is that grey, 1 changes nothing."""
    pixels, count = images.float(), images.shape[2] * images.shape[3]
    total = grey(pixels).sum((1, 2, 3), keepdim=True, dtype=torch.int64)
    return _blend((2 * total + count) // (2 * count), pixels, factors)


def color(images: Tensor, factors: np.ndarray) -> Tensor:
    """Blend with the grey image: 0 removes all colour, 1 changes nothing. Grey images are unchanged."""
    if images.shape[1] == 1:
        return images
    pixels = images.float()
    return _blend(grey(pixels), pixels, factors)


def sharpness(images: Tensor, factors: np.ndarray) -> Tensor:
    """Blend with a smoothed image: 0 smooths, 1 changes nothing, 2 sharpens. Border pixels are unchanged."""
    pixels = images.float()
    centre = pixels[..., 1:-1, 1:-1]
    rows = pixels[..., :-2, :] + pixels[..., 1:-1, :] + pixels[..., 2:, :]
    weighted = (rows[..., :-2] + rows[..., 1:-1]).add_(rows[..., 2:]).add_(centre, alpha=4)
    result = images.clone()
    result[..., 1:-1, 1:-1] = _blend(weighted.div_(13).add_(0.5).floor_(), centre, factors)
    return result


def posterize(images: Tensor, bits: np.ndarray) -> Tensor:
    """Keep the highest `bits` (1 to 8, truncated to an integer) bits of each value."""
    return images & _per_image(256 - 2 ** (8 - bits.astype(np.int64)), np.uint8, images)


def solarize(images: Tensor, thresholds: np.ndarray) -> Tensor:
    """Invert values at or above the threshold; 256 changes nothing."""
    reached = images >= _per_image(np.ceil(thresholds), np.int16, images)
    return images ^ reached.to(torch.uint8).mul_(255)


def invert(images: Tensor, _: np.ndarray) -> Tensor:
    """The negative; takes no parameter."""
    return 255 - images


def autocontrast(images: Tensor, _: np.ndarray) -> Tensor:
    """Stretch each channel to the full range; takes no parameter."""
    real = torch.float32 if images.device.type == "mps" else torch.float64
    lowest, highest = images.amin((2, 3), keepdim=True).to(real), images.amax((2, 3), keepdim=True).to(real)
    uniform = highest == lowest
    # Not `255.0 / tensor`: torch multiplies by the reciprocal there, which rounds twice.
    scale = torch.where(uniform, 1.0, torch.full_like(lowest, 255.0) / (highest - lowest))
    offset = torch.where(uniform, 0.0, -lowest * scale)
    return images.to(real).mul_(scale).add_(offset).to(torch.uint8)


def equalize(images: Tensor, _: np.ndarray) -> Tensor:
    """Spread the values of each channel so that all are about equally frequent; takes no parameter."""
    count, channels, height, width = images.shape
    flat = images.flatten(2)
    slots = torch.arange(0, count * channels * 256, 256, dtype=torch.int32, device=images.device).view(count, -1, 1)
    histogram = torch.bincount((flat + slots).flatten(), minlength=count * channels * 256).view(count, channels, 256)
    brightest = histogram.gather(2, flat.amax(2, keepdim=True).long())
    step = (height * width - brightest) // 255
    darker = histogram.cumsum(2).sub_(histogram)
    # Quotients of such small integers are exact enough in float32 to be truncated, and much faster than in integers.
    spread = (darker.add_(step // 2) / step).clamp_(max=255)
    # With too few pixels or a single value, there is nothing to equalise: Pillow then keeps the channel unchanged.
    table = torch.where(step > 0, spread, torch.arange(256.0, device=images.device)).to(torch.uint8)
    return table.gather(2, flat.long()).view(images.shape)


COLOUR_OPERATIONS: dict[str, Callable[[Tensor, np.ndarray], Tensor]] = {
    "brightness": brightness,
    "contrast": contrast,
    "color": color,
    "sharpness": sharpness,
    "posterize": posterize,
    "solarize": solarize,
    "invert": invert,
    "autocontrast": autocontrast,
    "equalize": equalize,
}


def grey(pixels: Tensor) -> Tensor:
    """`(B, 1, H, W) float32` from `(B, C, H, W) float32`: luma (ITU-R 601) as Pillow rounds it to a grey level."""
    if pixels.shape[1] == 1:
        return pixels
    red, green, blue = pixels.unsqueeze(1).unbind(2)
    # Pillow's 16-bit fixed point. Exact in float32, because every sum is an integer below 2 ** 24.
    luma = (red * 19595).add_(green, alpha=38470).add_(blue, alpha=7471).add_(1 << 15)
    return luma.mul_(1 / (1 << 16)).floor_()


def _blend(start: Tensor, end: Tensor, factors: np.ndarray) -> Tensor:
    """`start` at factor 0, `end` at factor 1, extrapolated outside; clipped and truncated to `uint8`."""
    return (end - start).mul_(_per_image(factors, np.float32, end)).add_(start).clamp_(0, 255).to(torch.uint8)


def _per_image(parameters: np.ndarray, dtype: type[np.generic], images: Tensor) -> Tensor:
    """`(B, 1, 1, 1)` on the images' device."""
    return torch.from_numpy(parameters.astype(dtype)).to(images.device).view(-1, 1, 1, 1)
