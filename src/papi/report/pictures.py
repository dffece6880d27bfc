"""Pictures of training and test images: the photo on disk if there is one, otherwise the network's input."""

import base64
import io
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from PIL import Image

from papi.data.dataset import Dataset
from papi.data.images.decode import ImageError, preview
from papi.data.own.folders import locate
from papi.errors import UserError
from papi.report.run import Run

LARGEST = 160  # pixels: largest side of a small picture on the page
THUMBNAIL = 320  # of a picture in the review section
PHOTO = 1024  # of a photo from the server
LOSSLESS = 64  # up to this side, pictures are stored as PNG, larger ones as JPEG
QUALITY = 80  # of a JPEG


def small_images(runs: Sequence[Run]) -> bool:
    """Return whether all images are so small that they are shown without smoothing."""
    return not any(run.photo_folder is not None or _is_large(run.dataset) for run in runs)


def _is_large(dataset: Dataset | None) -> bool:
    return dataset is not None and dataset.kind == "images" and max(dataset.input_shape[-2:]) > LOSSLESS


def photo_file(run: Run, index: int) -> Path | None:
    """Return the photo of a training image inside the data folder; None if there is none."""
    folder = run.photo_folder
    if folder is None:
        return None
    found = locate(folder, file_name(run, index))
    return found if isinstance(found, Path) else None


def file_name(run: Run, index: int) -> str:
    """Return the file name of a training image; empty if it has none or the data are missing."""
    names = None if run.dataset is None else run.dataset.file_names
    return "" if names is None else names[index]


def links(run: Run, page: Path) -> str:
    """Return the relative URL of the photo folder from the folder of a page; empty if there is none."""
    folder = run.photo_folder
    if folder is None:
        return ""
    try:
        between = os.path.relpath(folder.resolve(), page.resolve())
    except ValueError:  # another drive of Windows
        return ""
    return quote(Path(between).as_posix()) + "/"


def crop(run: Run) -> tuple[float, float]:
    """Return the centre crop of a photo that the network sees: its aspect ratio, and its share of the largest crop.

    `papi.data.images.decode` crops photos to the aspect ratio of the network's input, as large as possible; a
    pretrained encoder leaves a margin. Zeros if the crop is unknown.
    """
    if run.dataset is None or run.photo_folder is None:
        return 0.0, 0.0
    if run.dataset.photos is not None:
        return 1.0, run.dataset.photos.preparation.size / run.dataset.photos.preparation.kept
    if run.dataset.kind == "features":
        return 0.0, 0.0
    height, width = run.dataset.input_shape[-2:]
    return width / height, 1.0


def encoded(run: Run, index: int, side: int, test: bool = False) -> tuple[bytes, str] | None:
    """Return a training or test image as PNG or JPEG bytes with its media type; None if there is no picture."""
    if not test and (file := photo_file(run, index)) is not None:
        try:
            return _as_file(preview(file, side))
        except ImageError:  # the photo is missing or damaged: show the network's input instead
            pass
    try:
        image = None if run.dataset is None else run.dataset.image(index, test)
    except UserError:  # photos are decoded on access
        image = None
    return None if image is None else _as_file(_picture(image, side))


def picture(run: Run, index: int, test: bool = False, side: int = LARGEST) -> str:
    """Return the picture as a data URI; empty if there is none."""
    found = encoded(run, index, side, test)
    return "" if found is None else data_uri(*found)


def data_uri(content: bytes, kind: str) -> str:
    """Return the bytes of a picture as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(image: np.ndarray, side: int) -> Image.Image:
    """Convert one image `(C, H, W) uint8` with C 1 or 3."""
    found = Image.fromarray(image[0] if image.shape[0] == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    found.thumbnail((side, side))
    return found


def _as_file(image: Image.Image) -> tuple[bytes, str]:
    stream = io.BytesIO()
    if max(image.size) <= LOSSLESS:
        image.save(stream, "PNG", optimize=True)
        return stream.getvalue(), "image/png"
    image.save(stream, "JPEG", quality=QUALITY, optimize=True)
    return stream.getvalue(), "image/jpeg"
