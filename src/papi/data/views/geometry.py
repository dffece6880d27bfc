"""Operations that move pixels, for whole batches of `uint8` images `(B, C, H, W)`.

Each image has its own parameter, given as a `float64` array `(B,)`; pixels are moved on the images' device.
Results are bit-equal to Pillow's `Image.transform` and `Image.rotate`. This requires Pillow's own arithmetic for source
positions, 16-bit fixed point for nearest pixels and `float64` for bicubic shears: otherwise, a position between two
pixels or on the edge of the image could be rounded to the other side.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad


def move_nearest(images: Tensor, affine: np.ndarray, fill: int) -> Tensor:
    """Take each pixel from the nearest source pixel; pixels from outside the image become `fill`.

    `affine`, `(B, 2, 3) float64`: the centre (x, y) of a target pixel comes from `affine @ (x, y, 1)`.
    """
    count, channels, height, width = images.shape
    # Pillow uses whole steps of 1/65536, starting at the centre of the first pixel.
    step_x, step_y, start = (
        _fixed_point(part) for part in (affine[..., :1], affine[..., 1:2], affine @ [[0.5], [0.5], [1.0]])
    )
    along_x = torch.from_numpy(step_x * np.arange(width, dtype=np.int32)).to(images.device)
    along_y = torch.from_numpy(step_y * np.arange(height, dtype=np.int32) + start).to(images.device)
    column, row = (along_x.unsqueeze(2) + along_y.unsqueeze(3)).bitwise_right_shift_(16).unbind(1)
    # A one-pixel border holds the fill, so that positions outside need no mask: they are clamped to the border.
    framed = pad(images, (1, 1, 1, 1), value=fill)
    source = row.clamp_(-1, height).mul_(width + 2).add_(column.clamp_(-1, width)).add_(width + 3).long()
    return framed.flatten(2).gather(2, source.view(count, 1, -1).expand(-1, channels, -1)).view(images.shape)


def translation_x(fractions: np.ndarray, _: int, width: int) -> np.ndarray:
    """`(B, 2, 3)`: move the content left by a fraction of the width, rounded to whole pixels."""
    return _identity_but((0, 2), np.floor(fractions * width + 0.5))


def translation_y(fractions: np.ndarray, height: int, _: int) -> np.ndarray:
    """`(B, 2, 3)`: move the content up by a fraction of the height, rounded to whole pixels."""
    return _identity_but((1, 2), np.floor(fractions * height + 0.5))


def rotation(degrees: np.ndarray, height: int, width: int) -> np.ndarray:
    """`(B, 2, 3)`: rotate the content counter-clockwise about the image's centre."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y = width / 2, height / 2
    rows = (cosine, -sine, x - cosine * x + sine * y), (sine, cosine, y - sine * x - cosine * y)
    return np.moveaxis(np.array(rows), -1, 0)


NEAREST_MOVES: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "translateX": translation_x,
    "translateY": translation_y,
    "rotate": rotation,
}


def shear_x(images: Tensor, shears: np.ndarray, fill: int) -> Tensor:
    """Move row y left by `shear` times y, with bicubic interpolation; pixels from outside become `fill`."""
    channels, height, width = images.shape[1:]
    place = np.arange(width) + 0.5 + (shears[:, None] * (np.arange(height) + 0.5))[:, None, :, None]
    inside = torch.from_numpy(((place >= 0) & (place < width)).astype(np.uint8)).to(images.device)
    place -= 0.5
    left = np.floor(place)
    real = torch.float32 if images.device.type == "mps" else torch.float64
    fraction = torch.from_numpy(place - left).to(real).to(images.device)
    # The cubic between pixels x - 1 and x has index x, so the first one is left of the image.
    source = torch.from_numpy(np.clip(left.astype(np.int64) + 1, 0, width)).to(images.device)
    highest, *lower = (part.gather(3, source.expand(-1, channels, -1, -1)) for part in _cubics(images))
    result = highest.to(real)
    for part in lower:
        result.mul_(fraction).add_(part)
    # Products select inside pixels and fill the rest: a masked fill takes many times longer.
    return result.clamp_(0, 255).to(torch.uint8).mul_(inside).add_((1 - inside) * fill)


def shear_y(images: Tensor, shears: np.ndarray, fill: int) -> Tensor:
    """Move column x up by `shear` times x, with bicubic interpolation; pixels from outside become `fill`."""
    return shear_x(images.transpose(2, 3), shears, fill).transpose(2, 3)


SHEARS: dict[str, Callable[[Tensor, np.ndarray, int], Tensor]] = {"shearX": shear_x, "shearY": shear_y}


def _cubics(images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Coefficients of the cubic between adjacent pixels in a row, highest power first: `(B, C, H, W + 1) int16`.

    Keys' cubic with a = -1, the kernel of Pillow's transforms (its resizing has a = -1/2); edge pixels are repeated.
    """
    width = images.shape[3]
    first, last = images[..., :1], images[..., -1:]
    padded = torch.cat((first, first, images, last, last), dim=3).short()
    before, left, right, after = (padded[..., shift : shift + width + 1] for shift in range(4))
    drop = before - left
    cube = after - right - drop
    return cube, drop - cube, right - before, left


def _fixed_point(values: np.ndarray) -> np.ndarray:
    """In multiples of 1/65536 and 32 bits, as in Pillow for images with sides of less than 32768 pixels."""
    return np.floor(values * 65536 + 0.5).astype(np.int32)


def _identity_but(place: tuple[int, int], values: np.ndarray) -> np.ndarray:
    affine = np.tile(np.eye(2, 3), (len(values), 1, 1))
    affine[:, place[0], place[1]] = values
    return affine
