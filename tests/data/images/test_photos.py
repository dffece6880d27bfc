"""Photos of any size: decoded on demand, upright, at the size an encoder wants."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from papi.data.images.decode import LONGEST, decode_photo
from papi.data.images.photos import Photos, content_of
from papi.errors import UserError
from papi.networks.preparation import Preparation

SMALL = Preparation(size=28)  # photos are kept with a shorter side of 32


def ramp(height: int, width: int) -> Image.Image:
    """Red grows to the right, green downwards."""
    red = np.linspace(0, 255, width)[None].repeat(height, 0)
    green = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    return Image.fromarray(np.stack([red, green, np.zeros_like(red)], 2).astype(np.uint8))


@given(height=st.integers(1, 300), width=st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_the_shorter_side_is_kept_and_the_longer_is_bounded(height: int, width: int) -> None:
    photo = decode_photo(ramp(height, width), SMALL)
    assert photo.dtype == np.uint8
    assert min(photo.shape[1:]) == 32
    long, short = max(height, width), min(height, width)
    assert max(photo.shape[1:]) == round(32 * min(long / short, LONGEST))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"])
def test_resized_as_pillow_does(interpolation: str) -> None:
    image = ramp(64, 96)
    photo = decode_photo(image, Preparation(size=28, interpolation=interpolation))  # type: ignore[arg-type]
    expected = image.resize((48, 32), Image.Resampling[interpolation.upper()], reducing_gap=3.0)
    assert np.array_equal(photo.transpose(1, 2, 0), np.asarray(expected))


def test_a_photo_of_the_right_size_is_untouched() -> None:
    image = ramp(32, 50)
    assert np.array_equal(decode_photo(image, SMALL).transpose(1, 2, 0), np.asarray(image))


def test_of_a_panorama_the_middle_is_used() -> None:
    red = decode_photo(ramp(64, 640), SMALL)[0].astype(int)
    assert red.shape == (32, 64)
    assert abs(red[:, 0].mean() - 0.4 * 255) < 3
    assert abs(red[:, -1].mean() - 0.6 * 255) < 3


def test_a_large_jpeg_is_decoded_small_and_looks_the_same(tmp_path: Path) -> None:
    ramp(900, 1200).save(tmp_path / "large.jpg", quality=95)
    photo = decode_photo(tmp_path / "large.jpg", SMALL)
    whole = Image.open(tmp_path / "large.jpg")
    whole.load()
    assert photo.shape == (3, 32, 43)
    assert np.abs(photo.astype(int) - decode_photo(whole, SMALL)).max() <= 6


def test_a_photo_in_memory_is_the_file(tmp_path: Path) -> None:
    file = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    ramp(40, 80).save(file, exif=exif)
    with Image.open(file) as image:
        from_file, from_memory = Photos([file, image], SMALL)
    assert from_file.shape == (3, 64, 32), "a viewer turns it"
    assert np.array_equal(from_file, from_memory)


def test_some_photos_of_a_set() -> None:
    photos = Photos([ramp(40, 40 + k) for k in range(6)], SMALL)
    for part in (photos[2:4], photos[np.array([2, 3])], photos[np.array([0, 0, 1, 1, 0, 0], bool)]):
        assert len(part) == 2
        assert np.array_equal(part[0], photos[2])
        assert np.array_equal(part[1], photos[3])


def test_a_state_follows_the_file_and_a_content_the_pixels(tmp_path: Path) -> None:
    file, other = tmp_path / "a.png", tmp_path / "b.png"
    ramp(40, 40).save(file)
    shutil.copy2(file, other)
    photos = Photos([file, other], SMALL)
    assert photos.state(0) != photos.state(1), "another path"
    assert content_of(photos[0]) == content_of(photos[1])
    assert Photos([file], SMALL).state(0) == photos.state(0)
    assert Photos([file], Preparation(size=35)).state(0) != photos.state(0)
    before = photos.state(0)
    os.utime(file, (1, 1))
    assert photos.state(0) != before
    ramp(40, 41).save(file)
    assert content_of(photos[0]) != content_of(photos[1])
    assert Photos([ramp(40, 40)], SMALL).state(0) == content_of(photos[1])


def test_a_photo_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no photo")
    ramp(300, 300).save(tmp_path / "cut.jpg")
    content = (tmp_path / "cut.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(content[: len(content) // 2])
    photos = Photos([tmp_path / "text.jpg", tmp_path / "cut.jpg", tmp_path / "gone.jpg"], SMALL)
    for number, word in enumerate(("not an image", "damaged", "does not exist")):
        with pytest.raises(UserError, match=word):
            photos[number]
    with pytest.raises(UserError, match=r"gone\.jpg cannot be read"):
        photos.state(2)


def test_a_digest_follows_the_content_wherever_it_is(tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.png" for k in range(5)]
    for k, file in enumerate(files):
        ramp(30 + k, 30).save(file)
    digest = Photos(files, SMALL).digest(10**9)
    moved = [Path(shutil.copy(file, tmp_path / f"moved-{file.name}")) for file in files]
    assert Photos(moved, SMALL).digest(10**9) == digest
    assert Photos(files[::-1], SMALL).digest(10**9) != digest
    assert Photos(files, Preparation(size=35)).digest(10**9) != digest
    ramp(33, 33).save(moved[4])
    assert Photos(moved, SMALL).digest(10**9) != digest
    assert len(Photos(files, SMALL).digest(200)) == 32, "of a large set, some files count"
