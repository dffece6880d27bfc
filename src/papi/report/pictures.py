"""Images of a dataset as data URIs, small enough that hundreds fit on a page."""

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from papi.report.run import Run

LARGEST = 160  # pixels: of a picture on the page, whatever the size of the original
LOSSLESS = 64  # up to this side a PNG is small; beyond it a photograph is not


def small_images(runs: Sequence[Run]) -> bool:
    """Whether images are so small that they are shown with their pixels as they are, not blurred."""
    return all(run.dataset is None or max(run.dataset.samples.shape[-2:]) <= LOSSLESS for run in runs)


def data_uri(image: np.ndarray) -> str:
    """One image `(C, H, W) uint8`, C 1 or 3, as a data URI."""
    picture = Image.fromarray(image[0] if image.shape[0] == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
    picture.thumbnail((LARGEST, LARGEST))
    stream = io.BytesIO()
    if max(picture.size) <= LOSSLESS:
        picture.save(stream, "PNG", optimize=True)
        kind = "png"
    else:
        picture.save(stream, "JPEG", quality=85)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
