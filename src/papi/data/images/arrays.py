"""Converts arrays of images in any common layout to one layout."""

import numpy as np
from PIL import Image

from papi.errors import UserError


def picture_of(image: np.ndarray) -> Image.Image:
    """One image `(C, H, W) uint8` as a Pillow image."""
    return Image.fromarray(np.ascontiguousarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)))


def as_image_array(images: np.ndarray, what: str) -> np.ndarray:
    """`(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` of `uint8` to `(N, C, H, W)`; C is 1 or 3."""
    if images.dtype != np.uint8:
        raise UserError(f"{what} have type {images.dtype}: use uint8 pixel values from 0 to 255.")
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[1] in (1, 3):
        return images
    if images.ndim == 4 and images.shape[3] in (1, 3):
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    raise UserError(f"{what} have shape {images.shape}: use (N, H, W), (N, H, W, 3) or (N, 3, H, W).")
