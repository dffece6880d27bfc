"""Every batched operation against Pillow's own, image by image."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from papi.data.views.operations import OPERATION_NUMBER, OPERATIONS, apply_operations

AFFINE, BICUBIC = Image.Transform.AFFINE, Image.Resampling.BICUBIC


def move(image: Image.Image, affine: tuple[float, ...], fill: int, resample: int = 0) -> Image.Image:
    return image.transform(image.size, AFFINE, affine, resample, fillcolor=(fill,) * len(image.getbands()))


def rotate_onto_grey(image: Image.Image, degrees: float, fill: int) -> Image.Image:
    turned = image.convert("RGBA").rotate(degrees)
    return Image.composite(turned, Image.new("RGBA", turned.size, (fill,) * 4), turned).convert(image.mode)


PILLOW: dict[str, Callable[[Image.Image, float, int], Image.Image]] = {
    "identity": lambda image, _, fill: image,
    "brightness": lambda image, factor, fill: ImageEnhance.Brightness(image).enhance(factor),
    "contrast": lambda image, factor, fill: ImageEnhance.Contrast(image).enhance(factor),
    "color": lambda image, factor, fill: ImageEnhance.Color(image).enhance(factor),
    "sharpness": lambda image, factor, fill: ImageEnhance.Sharpness(image).enhance(factor),
    "posterize": lambda image, bits, fill: ImageOps.posterize(image, int(bits)),
    # Pillow only compares the threshold, so fractions do, whatever its annotation says.
    "solarize": lambda image, threshold, fill: ImageOps.solarize(image, threshold),  # type: ignore[arg-type]
    "invert": lambda image, _, fill: ImageOps.invert(image),
    "autocontrast": lambda image, _, fill: ImageOps.autocontrast(image),
    "equalize": lambda image, _, fill: ImageOps.equalize(image),
    "translateX": lambda image, part, fill: move(image, (1, 0, part * image.width, 0, 1, 0), fill),
    "translateY": lambda image, part, fill: move(image, (1, 0, 0, 0, 1, part * image.height), fill),
    "rotate": rotate_onto_grey,
    "shearX": lambda image, shear, fill: move(image, (1, shear, 0, 0, 1, 0), fill, BICUBIC),
    "shearY": lambda image, shear, fill: move(image, (1, 0, 0, shear, 1, 0), fill, BICUBIC),
}

ENHANCE = np.r_[1 + np.linspace(0, 0.9, 10), 1 - np.linspace(0, 0.9, 10), 0.0, 2.0, 0.05, 0.3333, 0.95]
SHEAR = np.r_[np.linspace(0, 0.3, 10), -np.linspace(0, 0.3, 10), -0.2871, 0.123]
TRANSLATE = np.r_[np.linspace(0, 150 / 331, 10), -np.linspace(0, 150 / 331, 10), -0.2871, 0.123]
PARAMETERS = {
    "brightness": ENHANCE,
    "contrast": ENHANCE,
    "color": ENHANCE,
    "sharpness": ENHANCE,
    "posterize": np.arange(1.0, 9.0),
    "solarize": np.r_[np.linspace(256, 0, 10), 1.0, 128.0, 255.0],
    "translateX": TRANSLATE,
    "translateY": TRANSLATE,
    "rotate": np.r_[np.linspace(0, 30, 10), -np.linspace(0, 30, 10), -28.71, 12.3],
    "shearX": SHEAR,
    "shearY": SHEAR,
}


def sample_images(channels: int, height: int, width: int) -> np.ndarray:
    """`(13, C, H, W) uint8`: uniform, gradients, noise, narrow ranges, few values, one odd pixel."""
    draws = np.random.default_rng(channels * 10_000 + height * 100 + width)
    shape = (channels, height, width)
    odd_pixel = np.full(shape, 50)
    odd_pixel[:, height // 2, width // 3] = 200
    images = [
        np.zeros(shape),
        np.full(shape, 255),
        odd_pixel,
        np.broadcast_to(np.linspace(0, 255, width), shape),
        np.broadcast_to(np.linspace(120, 100, height)[:, None], shape),
        np.indices((height, width)).sum(0) % 2 * np.full(shape, 255),
        draws.integers(0, 256, shape),
        draws.integers(100, 103, shape),
        draws.choice([3, 90, 255], shape),
        draws.integers(20, 210, (channels, 1, 1)) + draws.integers(0, 30, shape),
        draws.normal(120, 30, shape).clip(0, 255),
        draws.normal(250, 40, shape).clip(0, 255),
        draws.gamma(2, 20, shape).clip(0, 255),
    ]
    return np.stack(images).astype(np.uint8)


def to_pillow(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))


def from_pillow(image: Image.Image) -> np.ndarray:
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def one_by_one(images: np.ndarray, names: list[str], parameters: np.ndarray, fill: int) -> np.ndarray:
    results = [
        PILLOW[name](to_pillow(image), parameter, fill)
        for image, name, parameter in zip(images, names, parameters, strict=True)
    ]
    return np.stack([from_pillow(image) for image in results])


def in_batch(images: np.ndarray, names: list[str], parameters: np.ndarray, fill: int) -> np.ndarray:
    numbers = np.array([OPERATION_NUMBER[name] for name in names], dtype=np.int64)
    return apply_operations(torch.from_numpy(images), numbers, parameters, fill).numpy()


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (33, 30)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_equals_pillow(name: str, channels: int, size: tuple[int, int]) -> None:
    images = sample_images(channels, *size)
    parameters = PARAMETERS.get(name, np.zeros(1))
    # Every image meets every parameter: the batch is their product.
    batch, values = np.repeat(images, len(parameters), axis=0), np.tile(parameters, len(images))
    names = [name] * len(batch)
    np.testing.assert_array_equal(in_batch(batch, names, values, 128), one_by_one(batch, names, values, 128))


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 3), (64, 48)], ids=str)
def test_any_size_equals_pillow(size: tuple[int, int]) -> None:
    images = sample_images(3, *size)
    for name in OPERATIONS:
        names, values = [name] * len(images), np.resize(PARAMETERS.get(name, np.zeros(1))[::-1], len(images))
        np.testing.assert_array_equal(in_batch(images, names, values, 0), one_by_one(images, names, values, 0), name)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("fill", [0, 128])
def test_a_mixed_batch_keeps_its_order(channels: int, fill: int) -> None:
    draws = np.random.default_rng(fill + channels)
    images = draws.permutation(np.tile(sample_images(channels, 32, 32), (15, 1, 1, 1)))
    names = draws.choice(OPERATIONS, len(images)).tolist()
    values = np.array([draws.choice(PARAMETERS.get(name, np.zeros(1))) for name in names])
    before = images.copy()
    np.testing.assert_array_equal(in_batch(images, names, values, fill), one_by_one(images, names, values, fill))
    np.testing.assert_array_equal(images, before)


def test_memory_layout_does_not_matter() -> None:
    images = torch.from_numpy(np.resize(sample_images(3, 32, 32), (len(OPERATIONS), 3, 32, 32)))
    numbers, values = np.arange(len(OPERATIONS)), np.full(len(OPERATIONS), 0.25)
    values[OPERATION_NUMBER["posterize"]] = 4
    expected = apply_operations(images, numbers, values, 128)
    channels_last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(apply_operations(channels_last, numbers, values, 128), expected)


@pytest.mark.parametrize("count", [0, 1])
def test_small_batches(count: int) -> None:
    images = sample_images(3, 32, 32)[6 : 6 + count]
    for name in OPERATIONS:
        values = np.resize(PARAMETERS.get(name, np.zeros(1))[2:], count)
        result = in_batch(images, [name] * count, values, 128)
        assert result.shape == images.shape
        np.testing.assert_array_equal(result, one_by_one(images, [name] * count, values, 128) if count else images)
