"""Collects the images to classify from files, folders, Pillow images and arrays of any size."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from papi.data.images.arrays import as_image_array, picture_of
from papi.data.images.photos import Source
from papi.data.own.folders import image_files
from papi.errors import UserError


def sources_of(given: object) -> list[Source]:
    """Return every image of the input: a path, a folder, a Pillow image, an array, or a sequence of these.

    Arrays are `uint8`: `(N, H, W)`, `(N, H, W, C)`, `(N, C, H, W)`; one image alone is `(H, W, 3)`, and in a sequence
    also `(H, W)` or `(C, H, W)`.
    """
    found = list(_sources(given, alone=True))
    if not found:
        raise UserError("the input has no images: pass paths, folders, Pillow images or arrays.")
    return found


def _sources(given: object, alone: bool = False) -> Iterable[Source]:
    if isinstance(given, Image.Image):
        return [given]
    if isinstance(given, str | Path):
        return _below(Path(given))
    if isinstance(given, np.ndarray) or (hasattr(given, "__array__") and hasattr(given, "shape")):
        array = np.asarray(given)
        return _sources(array.tolist()) if array.dtype.kind in "UO" else _pictures(array, alone)
    if isinstance(given, Iterable):
        return [source for each in given for source in _sources(each)]
    raise UserError(f"{type(given).__name__} is not an image: pass paths, folders, Pillow images or uint8 arrays.")


def _below(path: Path) -> list[Source]:
    if path.is_dir():
        return list(image_files(path))
    if not path.exists():
        raise UserError(f"{path} does not exist: specify an image or a folder of images.")
    return [path]


def _pictures(array: np.ndarray, alone: bool) -> list[Source]:
    """Return the images of an array. Three axes are one image of a sequence, one colour image, or grey images."""
    if (array.ndim == 3 and array.shape[2] == 3) or (array.ndim in (2, 3) and not alone):
        array = array[None]
    return [picture_of(image) for image in as_image_array(array, "the images")]
