"""Decodes image files. Worker processes import this module, so it imports only NumPy and Pillow."""

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from papi.networks.preparation import Preparation

_HEIF_PLUGIN = "pillow_heif"
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".avif"}
if find_spec(_HEIF_PLUGIN) is not None:
    SUFFIXES |= {".heic", ".heif"}
# Pillow reads many more; for one of them, EPS, it starts another program.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM", "GIF", "AVIF", "HEIF")
MAX_PIXELS = 100_000_000  # a file of a few kilobytes can declare more pixels than fit into memory

LONGEST = 2  # maximum ratio of the longer to the shorter side of a photo

_GREY_MODES = {"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "I;16N"}
_ORIENTATION = 0x0112
_ALPHA_MODES = {"LA", "La", "PA", "RGBA", "RGBa"}


class ImageError(Exception):
    """An image that cannot be used; the text is the reason, to follow the file name."""


class Shape(NamedTuple):
    """The properties in the header of an image file."""

    height: int
    width: int
    grey: bool


class Target(NamedTuple):
    """The shape that every image of a set is converted to."""

    height: int
    width: int
    channels: Literal[1, 3]
    centre: int | None = None  # first crop the centre square of this side, or as much as there is; the target is then
    # square, too


def probe(path: Path) -> Shape:
    """Height and width as a viewer would show them, and whether the image is grey; pixels are not decoded."""
    with _open(path) as image:
        width, height = image.size
        if _turned(image):
            width, height = height, width
        return Shape(height, width, image.mode in _GREY_MODES)


def _turned(image: Image.Image) -> bool:
    """Whether a viewer rotates the image by 90 degrees. Unlike Pillow, this does not decode a whole png."""
    if "exif" not in image.info and image.format != "TIFF":
        return False
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:
        return False  # other readers ignore a damaged header, too
    return isinstance(orientation, int) and orientation >= 5


def decode(source: Path | Image.Image, target: Target) -> np.ndarray:
    """`(C, H, W) uint8`: upright, eight bits, white where transparent, cropped to the target's proportions, resized."""
    if isinstance(source, Path):
        with _open(source) as image:
            return decode(image, target)
    with _damage():
        if target.centre is None:
            _decode_small(source, min(target.height, target.width))
        pixels = _resize(_plain(ImageOps.exif_transpose(source), target.channels), target)
    array = np.asarray(pixels, np.uint8)
    return array[None] if target.channels == 1 else array.transpose(2, 0, 1)


def decode_photo(source: Path | Image.Image, preparation: Preparation) -> np.ndarray:
    """`(3, h, w) uint8`: upright, white where transparent, with the shorter side `preparation.kept`.

    The aspect ratio is kept. If the longer side is more than `LONGEST` times the shorter one, the centre part is used.
    """
    if isinstance(source, Path):
        with _open(source) as image:
            return decode_photo(image, preparation)
    whole = source.size[::-1] if _turned(source) else source.size
    part = [min(length, LONGEST * min(whole)) for length in whole]
    width, height = (max(preparation.kept, round(length * preparation.kept / min(whole))) for length in part)
    with _damage():
        _decode_small(source, preparation.kept)
        image = _plain(ImageOps.exif_transpose(source), channels=3)
        if (width, height) != image.size:
            # In pixels of the decoded image, which may be an eighth of the original size.
            across, down = (have * used / all_ for have, used, all_ in zip(image.size, part, whole, strict=True))
            left, top = (image.size[0] - across) / 2, (image.size[1] - down) / 2
            resampling = Image.Resampling[preparation.interpolation.upper()]
            box = (left, top, left + across, top + down)
            image = image.resize((width, height), resampling, box, reducing_gap=3.0)
    pixels: np.ndarray = np.array(image, np.uint8).transpose(2, 0, 1)
    return pixels


def decode_square(source: Path | Image.Image, preparation: Preparation) -> np.ndarray:
    """The centre square of a photo, `(3, size, size) uint8`, which an encoder sees in evaluation."""
    photo, size = decode_photo(source, preparation), preparation.size
    top, left = ((length - size) // 2 for length in photo.shape[1:])
    return photo[:, top : top + size, left : left + size]


def _decode_small(image: Image.Image, side: int) -> None:
    """Decode a JPEG at 1/2, 1/4 or 1/8 of its size, which is faster, if that is still large enough to resize."""
    if image.format == "JPEG":
        image.draft(None, (2 * side, 2 * side))


@contextmanager
def _damage() -> Iterator[None]:
    """Convert any error of Pillow on a damaged file to an ImageError."""
    try:
        yield
    except (ImageError, MemoryError):
        raise
    except Exception as error:
        raise ImageError(f"is damaged ({_reason(error)})") from error


def preview(path: Path, side: int) -> Image.Image:
    """The whole image for display, upright, its longer side at most `side` pixels: mode RGB."""
    with _open(path) as image, _damage():
        _decode_small(image, side // 2)
        upright = _plain(ImageOps.exif_transpose(image), channels=3)
        upright.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=3.0)
        return upright


@cache
def readable_formats() -> tuple[str, ...]:
    """The accepted image formats that the installed Pillow can read."""
    if find_spec(_HEIF_PLUGIN) is not None:
        import_module(_HEIF_PLUGIN).register_heif_opener()
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _open(path: Path) -> Image.Image:
    """Open an image by its content, regardless of its name."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a named pipe would block
            raise ImageError("is not a regular file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the pixel limit below replaces Pillow's warning
            image = Image.open(path, formats=readable_formats())
    except FileNotFoundError as error:
        raise ImageError("does not exist") from error
    except UnidentifiedImageError as error:
        raise ImageError("is not an image that can be read") from error
    except Image.DecompressionBombError as error:
        raise ImageError(f"has too many pixels ({error}); the limit is {MAX_PIXELS:,}") from error
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # Pillow can raise anything for a damaged file
        raise ImageError(f"cannot be read ({_reason(error)})") from error
    pixels = image.size[0] * image.size[1]
    if pixels > MAX_PIXELS:
        image.close()
        raise ImageError(f"has {pixels:,} pixels; the limit is {MAX_PIXELS:,}")
    return image


def _reason(error: Exception) -> str:
    """The reason without the path, because every message begins with it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _plain(image: Image.Image, channels: int) -> Image.Image:
    """Eight bits per channel, without transparency: mode L or RGB."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode.startswith("I"):  # 16 bits; Pillow opens some as the 32-bit mode I
        values = np.asarray(image)
        if values.min(initial=0) < 0 or values.max(initial=0) > 65535:
            raise ImageError("has 32 bits per pixel: save it with 8 or 16")
        return Image.fromarray((values >> 8).astype(np.uint8)).convert(mode)
    if image.mode == "F":
        raise ImageError("has floating-point pixels: save it with 8 or 16 bits")
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        visible = image.convert("RGBA")
        background = Image.new("RGBA", visible.size, "white")
        return Image.alpha_composite(background, visible).convert(mode)
    return image if image.mode == mode else image.convert(mode)


def _resize(image: Image.Image, target: Target) -> Image.Image:
    """The centre part with the target's aspect ratio, at the target's size."""
    if target.centre is not None:  # like torchvision's CenterCrop and Resize
        image = _centre(image, target.centre)
        return image.resize((target.width, target.height), Image.Resampling.BILINEAR)
    width, height = image.size
    if (height, width) == (target.height, target.width):
        return image
    scale = min(width / target.width, height / target.height)
    across, down = scale * target.width, scale * target.height
    left, top = (width - across) / 2, (height - down) / 2
    # The uncropped side may exceed the image by a rounding error, as in 225 / 224 * 224.
    box = (max(left, 0.0), max(top, 0.0), min(left + across, width), min(top + down, height))
    size = (target.width, target.height)
    return image.resize(size, Image.Resampling.BICUBIC, box, reducing_gap=3.0)


def _centre(image: Image.Image, side: int) -> Image.Image:
    """The centre square, as large as the image allows; odd margins are rounded to even numbers."""
    side = min(side, *image.size)
    left, top = round((image.size[0] - side) / 2), round((image.size[1] - side) / 2)
    return image.crop((left, top, left + side, top + side))
