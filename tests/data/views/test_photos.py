"""Views of photos of any size."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from papi.data.views.photos import ERASED, GREY, SMALLEST_PART, PhotoViews, erase
from papi.networks.preparation import Preparation
from papi.randomness import draws, draws_by_row

SIZE = 28
VIEWS = PhotoViews(Preparation(size=SIZE))


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return np.array(Image.fromarray(coarse).resize((width, height))).transpose(2, 0, 1)


def placed(height: int, width: int) -> np.ndarray:
    """Red tells the column of a pixel, green its row."""
    row, column = np.mgrid[:height, :width].astype(np.uint8)
    return np.stack([column, row, np.zeros_like(row)])


@given(height=st.integers(32, 70), width=st.integers(32, 70), name=st.sampled_from(["weak", "strong", "plain"]))
@settings(max_examples=40, deadline=None)
def test_every_view_is_a_square(height: int, width: int, name: str) -> None:
    made = VIEWS(name, [photo(height, width), photo(width, height)], draws(0, "test"))
    assert made.shape == (2, 3, SIZE, SIZE)
    assert made.dtype == torch.uint8


def test_plain_is_the_middle() -> None:
    [made] = VIEWS.plain([placed(32, 50)])
    assert made[0, 0].tolist() == list(range(11, 39))
    assert made[1, :, 0].tolist() == list(range(2, 30))


def test_a_weak_view_is_a_part_of_the_photo() -> None:
    """Its columns and rows are in order, or columns in reverse; it covers at least a quarter of the area."""
    count, height, width = 300, 40, 44
    made = VIEWS("weak", [placed(height, width)] * count, draws(0, "test")).float()
    columns, rows = made[:, 0].mean(1), made[:, 1].mean(2)
    across, down = columns[:, -1] - columns[:, 0], rows[:, -1] - rows[:, 0]
    assert (down > 0).all()
    mirrored = (across < 0).float().mean().item()
    assert 0.4 < mirrored < 0.6
    # The first and the last pixel are centred half a pixel inside of the part.
    area = (across.abs() * down) * (SIZE / (SIZE - 1)) ** 2 / (height * width)
    assert area.min() > SMALLEST_PART * 0.85
    assert area.max() > 0.85
    assert 0.5 < area.mean() < 0.75
    assert columns.min() < 3
    assert columns.max() > width - 4


def test_resized_as_pillow_does() -> None:
    """The whole photo, shrunk, is what Pillow makes of it up to a grey level."""

    class Whole:
        """Draws that take all of the photo and do not mirror it."""

        def random(self, size: object, /) -> np.ndarray:
            return np.full(size, 0.9)  # type: ignore[call-overload, no-any-return]

        def uniform(self, low: float, high: float, size: object, /) -> np.ndarray:
            return np.full(size, 1.0 if high == 1 else 0.0)  # type: ignore[call-overload, no-any-return]

    for name in ("bilinear", "bicubic"):
        views = PhotoViews(Preparation(size=SIZE, interpolation=name))  # type: ignore[arg-type]
        [made] = views("weak", [photo(48, 48)], Whole())  # type: ignore[arg-type]
        image = Image.fromarray(photo(48, 48).transpose(1, 2, 0))
        expected = np.asarray(image.resize((SIZE, SIZE), Image.Resampling[name.upper()])).transpose(2, 0, 1)
        assert np.abs(made.numpy().astype(int) - expected).max() <= 1


def test_a_strong_view_has_a_grey_rectangle() -> None:
    images = torch.zeros(200, 3, 40, 60, dtype=torch.uint8)
    made = erase(images, draws(0, "test"))
    for image in made:
        grey = image[0] == GREY
        assert torch.equal(grey.expand(3, -1, -1), image == GREY)
        rows, columns = grey.any(1), grey.any(0)
        assert int(grey.sum()) == int(rows.sum()) * int(columns.sum()), "a rectangle"
        for side in (rows, columns):
            assert side.diff().sum() <= 2, "in one piece"
    shares = (made[:, 0] == GREY).float().mean((1, 2))
    assert ERASED[0] * 0.7 < shares.min() < 2 * ERASED[0]
    assert 0.25 < shares.max() < ERASED[1] * 1.1


def test_a_row_depends_on_its_own_draws_alone() -> None:
    photos = [photo(32, 40 + k, k) for k in range(4)]
    for name in ("weak", "strong"):
        together = VIEWS(name, photos, draws_by_row([draws(k, "test") for k in range(4)]))
        for k in range(4):
            [alone] = VIEWS(name, [photos[k]], draws_by_row([draws(k, "test")]))
            assert torch.equal(together[k], alone)


@pytest.mark.parametrize("interpolation", ["nearest", "lanczos", "box", "hamming"])
def test_every_interpolation_has_views(interpolation: str) -> None:
    views = PhotoViews(Preparation(size=SIZE, interpolation=interpolation))  # type: ignore[arg-type]
    made = views("weak", [photo(40, 50)], draws(0, "test"))
    assert made.float().std() > 10
