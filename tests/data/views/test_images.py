"""Views of whole batches against one image at a time."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from papi.data.dataset import ViewRecipe
from papi.data.views.autoaugment import AutoAugment
from papi.data.views.images import ImageViews, NormaliseImages, crop_shares, cutout, flip_and_crop, resized_crop


def random_images(count: int, channels: int = 1, size: int = 12) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, channels, size, size), dtype=np.uint8))


def literal_flip_and_crop(images: Tensor, recipe: ViewRecipe, draws: np.random.Generator) -> Tensor:
    """Image by image: mirror, pad by reflection, cut out."""
    count, _, height, width = images.shape
    pad = recipe.crop_padding
    down, right = draws.integers(-pad, pad + 1, count), draws.integers(-pad, pad + 1, count)
    mirrored = draws.random(count) < 0.5 if recipe.flip else np.zeros(count, bool)
    result = []
    for i, image in enumerate(images.numpy()):
        image = image[:, :, ::-1] if mirrored[i] else image
        padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad)), mode="reflect")
        top, left = pad + down[i], pad + right[i]
        result.append(padded[:, top : top + height, left : left + width])
    return torch.from_numpy(np.stack(result))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("recipe", [ViewRecipe(True, 4, 0), ViewRecipe(False, 2, 0), ViewRecipe(True, 0, 0)])
def test_flip_and_crop_equals_one_image_at_a_time(recipe: ViewRecipe, channels: int) -> None:
    images = random_images(50, channels)
    ours = flip_and_crop(images, recipe, np.random.default_rng(1))
    assert torch.equal(ours, literal_flip_and_crop(images, recipe, np.random.default_rng(1)))


@pytest.mark.parametrize("side", [4, 5, 40])
def test_cutout_blackens_one_clipped_square_an_image(side: int) -> None:
    images = torch.full((60, 3, 12, 12), 200, dtype=torch.uint8)
    random = np.random.default_rng(2)
    rows, columns = random.integers(0, 12, 60), random.integers(0, 12, 60)
    ours = cutout(images, side, np.random.default_rng(2))
    for image, row, column in zip(ours, rows, columns, strict=True):
        expected = torch.full((3, 12, 12), 200, dtype=torch.uint8)
        top, left = row - side // 2, column - side // 2
        expected[:, max(0, top) : max(0, top + side), max(0, left) : max(0, left + side)] = 0
        assert torch.equal(image, expected)


def test_each_image_has_its_own_draw() -> None:
    image = random_images(1).expand(64, -1, -1, -1)
    view = ImageViews(ViewRecipe())("strong", image, np.random.default_rng(0))
    assert len({each.numpy().tobytes() for each in view}) > 50


def test_weak_keeps_every_pixel_value_and_strong_adds_black() -> None:
    images = random_images(20).clamp_min(1)
    views = ImageViews(ViewRecipe(crop_padding=2, cutout=6))
    assert (views("weak", images, np.random.default_rng(0)) > 0).all()
    assert (views("strong", images, np.random.default_rng(0)) == 0).any((1, 2, 3)).all()
    assert views("plain", images, np.random.default_rng(0)) is images


def test_a_policy_comes_after_the_crop_and_before_the_cutout() -> None:
    images = random_images(30, channels=3, size=16)
    recipe = ViewRecipe(crop_padding=2, cutout=6, policy="cifar10")
    ours = ImageViews(recipe)("strong", images, np.random.default_rng(4))
    random = np.random.default_rng(4)
    expected = cutout(AutoAugment("cifar10")(flip_and_crop(images, recipe, random), random), 6, random)
    assert torch.equal(ours, expected)


def test_nothing_allowed_means_nothing_done() -> None:
    images = random_images(3)
    assert ImageViews(ViewRecipe(flip=False, crop_padding=0))("weak", images, np.random.default_rng(0)) is images


class TestResizedCrop:
    def test_size_and_type(self) -> None:
        crops = resized_crop(random_images(5, 3, 21), 16, np.random.default_rng(0))
        assert crops.shape == (5, 3, 16, 16)
        assert crops.dtype == torch.uint8

    def test_they_are_resized_as_pillow_does(self) -> None:
        """Any part, smaller and larger than the result, to a grey level."""
        image = random_images(1, 3, 84)
        random = np.random.default_rng(3)
        shares = crop_shares(40, 84, 84, 0.08, random)
        places = random.uniform(0, 1, shares.shape)
        crops = resized_crop(image.expand(40, -1, -1, -1), 64, np.random.default_rng(3))
        pixels = Image.fromarray(image[0].numpy().transpose(1, 2, 0))
        for crop, share, place in zip(crops, shares, places, strict=True):
            height, width = np.round(share * 84)
            top, left = np.floor(place * (85 - np.array([height, width])))
            part = pixels.crop((int(left), int(top), int(left + width), int(top + height)))
            expected = np.asarray(part.resize((64, 64), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
            assert np.abs(crop.numpy().astype(int) - expected).max() <= 1

    def test_parts_lie_inside_and_have_the_right_shape(self) -> None:
        """On an image whose pixels tell their place, the crop's corners tell which part it is."""
        side = 200
        down = np.broadcast_to(np.arange(side)[:, None], (side, side))
        place = np.stack([down, down.T, 0 * down]).astype(np.uint8)
        crops = resized_crop(torch.from_numpy(place).expand(400, -1, -1, -1), 50, np.random.default_rng(1)).float()
        high = (crops[:, 0, -1, 0] - crops[:, 0, 0, 0]) * 50 / 49 / side
        wide = (crops[:, 1, 0, -1] - crops[:, 1, 0, 0]) * 50 / 49 / side
        area, aspect = high * wide, wide / high
        assert area.min() > 0.06
        assert area.max() <= 1.05
        assert aspect.min() > 0.7
        assert aspect.max() < 1.45
        assert 0.4 < area.mean() < 0.6


def test_half_of_the_images_are_mirrored() -> None:
    images = random_images(2000, size=4)
    view = flip_and_crop(images, ViewRecipe(True, 0, 0), np.random.default_rng(3))
    mirrored = (view == images.flip(3)).all((1, 2, 3)).float().mean().item()
    assert abs(mirrored - 0.5) < 4 * 0.5 / 2000**0.5


def test_normalise() -> None:
    images = random_images(5, channels=3)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
    result = NormaliseImages(mean, std, torch.device("cpu"))(images)
    expected = (images / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    torch.testing.assert_close(result, expected, atol=1e-6, rtol=0)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert NormaliseImages(mean, std, torch.device("cpu"))(images[:0]).shape == (0, *images.shape[1:])
