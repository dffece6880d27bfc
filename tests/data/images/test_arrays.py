"""Arrays of images in every layout that people use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data.images.arrays import as_image_array
from papi.errors import UserError

sides = st.integers(4, 9)  # more than the channels, so that a shape can be read in one way only


@given(st.integers(0, 5), sides, sides)
def test_grey_images_without_a_channel(count: int, height: int, width: int) -> None:
    images = np.arange(count * height * width).reshape(count, height, width).astype(np.uint8)
    converted = as_image_array(images, "images")
    assert converted.shape == (count, 1, height, width)
    np.testing.assert_array_equal(converted[:, 0], images)


@given(st.integers(0, 5), st.sampled_from([1, 3]), sides, sides)
def test_channels_last_become_channels_first(count: int, channels: int, height: int, width: int) -> None:
    images = np.arange(count * height * width * channels).astype(np.uint8).reshape(count, height, width, channels)
    converted = as_image_array(images, "images")
    np.testing.assert_array_equal(converted, images.transpose(0, 3, 1, 2))
    assert converted.flags.c_contiguous  # torch reads it as it lies


@given(st.integers(0, 5), st.sampled_from([1, 3]), sides, sides)
def test_channels_first_stay_as_they_are(count: int, channels: int, height: int, width: int) -> None:
    images = np.zeros((count, channels, height, width), np.uint8)
    assert as_image_array(images, "images") is images


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_types_are_refused(dtype: type) -> None:
    with pytest.raises(UserError, match=rf"the photos have type {np.dtype(dtype)}: use uint8"):
        as_image_array(np.zeros((2, 4, 4), dtype), "the photos")


@pytest.mark.parametrize("shape", [(4,), (4, 4), (2, 2, 8, 8), (2, 8, 8, 4), (1, 2, 3, 4, 5)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"the photos have shape .*: use \(N, H, W\)"):
        as_image_array(np.zeros(shape, np.uint8), "the photos")
