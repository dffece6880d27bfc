"""Pictures of training and test images: the photo on disk where there is one, else the sample of the network."""

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

LARGEST = 160  # pixels: of a small picture on the page, whatever the size of the original
THUMBNAIL = 320  # of a picture to decide on
PHOTO = 1024  # of the photo that the server hands out
LOSSLESS = 64  # up to this side a PNG is small; beyond it a photograph is not
QUALITY = 80  # of a JPEG


def small_images(runs: Sequence[Run]) -> bool:
    """Whether all that can be shown is so small that it is shown with its pixels as they are, not blurred."""
    return not any(run.photo_folder is not None or _is_large(run.dataset) for run in runs)


def _is_large(dataset: Dataset | None) -> bool:
    return dataset is not None and dataset.kind == "images" and max(dataset.input_shape[-2:]) > LOSSLESS


def photo_file(run: Run, index: int) -> Path | None:
    """The photo of a training image, never one outside the folder of the data."""
    folder = run.photo_folder
    if folder is None:
        return None
    found = locate(folder, file_name(run, index))
    return found if isinstance(found, Path) else None


def file_name(run: Run, index: int) -> str:
    """The file of a training image; empty if it comes from none, or the data are gone."""
    names = None if run.dataset is None else run.dataset.file_names
    return "" if names is None else names[index]


def links(run: Run, page: Path) -> str:
    """What stands before the quoted name of a photo in an address relative to the folder of a page; empty if none."""
    folder = run.photo_folder
    if folder is None:
        return ""
    try:
        between = os.path.relpath(folder.resolve(), page.resolve())
    except ValueError:  # another drive of Windows
        return ""
    return quote(Path(between).as_posix()) + "/"


def crop(run: Run) -> tuple[float, float]:
    """The part from the middle of a photo that the network sees: width by height, and its share of what fits.

    `papi.data.images.decode` cuts photos to the proportions of the network's input, as large as they allow; a
    pretrained encoder leaves a margin. Zeros if it is not known.
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
    """A training or test image as the bytes of a PNG or JPEG with its media type; None if there is nothing to show."""
    if not test and (file := photo_file(run, index)) is not None:
        try:
            return _as_file(preview(file, side))
        except ImageError:  # it has gone, or was spoilt, since the run: the network's view of it is still there
            pass
    try:
        image = None if run.dataset is None else run.dataset.image(index, test)
    except UserError:  # a photo that was decoded only now
        image = None
    return None if image is None else _as_file(_picture(image, side))


def picture(run: Run, index: int, test: bool = False, side: int = LARGEST) -> str:
    """The same as a data URI; empty if there is nothing to show."""
    found = encoded(run, index, side, test)
    return "" if found is None else data_uri(*found)


def data_uri(content: bytes, kind: str) -> str:
    """The bytes of a picture as an address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(image: np.ndarray, side: int) -> Image.Image:
    """One image `(C, H, W) uint8`, C 1 or 3."""
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
