"""Images as data URIs."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from papi.report.pictures import LARGEST, LOSSLESS, data_uri, small_images
from papi.report.run import Run
from runs_in_memory import run_of


def opened(uri: str) -> Image.Image:
    head, _, content = uri.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    return Image.open(io.BytesIO(base64.b64decode(content)))


@settings(deadline=None)
@given(st.sampled_from([1, 3]), st.integers(1, LOSSLESS), st.integers(1, LOSSLESS), st.integers(0, 2**32 - 1))
def test_small_images_keep_every_pixel(channels: int, height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (channels, height, width), np.uint8)
    shown = np.asarray(opened(data_uri(image)))
    assert np.array_equal(shown.reshape(height, width, channels), image.transpose(1, 2, 0))


@pytest.mark.parametrize("shape", [(1, 65, 65), (3, 100, 400), (3, 1000, 20)])
def test_large_images_become_small_and_keep_their_proportions(shape: tuple[int, int, int]) -> None:
    image = opened(data_uri(np.full(shape, 128, np.uint8)))
    assert image.format == "JPEG"
    assert max(image.size) == min(LARGEST, max(shape[1:]))
    assert image.size[0] / image.size[1] == pytest.approx(shape[2] / shape[1], rel=0.4)


def with_side(side: int) -> Run:
    run = run_of([[0.5, 0.5]])
    assert run.dataset is not None
    run.dataset = replace(run.dataset, samples=np.zeros((1, 1, side, side), np.uint8))
    return run


def test_pixels_are_shown_as_they_are_if_all_images_are_small() -> None:
    gone = run_of([[0.5, 0.5]])
    gone.dataset = None
    assert small_images([with_side(LOSSLESS), gone])
    assert not small_images([with_side(LOSSLESS), with_side(LOSSLESS + 1)])
