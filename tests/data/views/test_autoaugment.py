"""The batched policies against literal ones that take one Pillow image at a time, and the policies' statistics."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from papi.data.views import autoaugment
from papi.data.views.autoaugment import AutoAugment
from papi.data.views.operations import OPERATIONS
from papi.errors import UserError

POLICIES = json.loads(Path(autoaugment.__file__).with_name("autoaugment.json").read_text(encoding="utf-8"))
SIZES = {"cifar10": 97, "svhn": 25, "imagenet": 119}
ENHANCERS = {
    "color": ImageEnhance.Color,
    "contrast": ImageEnhance.Contrast,
    "sharpness": ImageEnhance.Sharpness,
    "brightness": ImageEnhance.Brightness,
}
SIGNED = {*ENHANCERS, "shearX", "shearY", "translateX", "translateY"}


def photographs(count: int, channels: int = 3, size: int = 32) -> Tensor:
    """`(B, C, H, W) uint8` with structure: blotches of a few pixels, of different mean and contrast."""
    draws = np.random.default_rng(count)
    coarse = draws.normal(draws.integers(30, 220, (count, channels, 1, 1)), 40, (count, channels, 8, 8))
    blotches = coarse.repeat(size // 8, axis=2).repeat(size // 8, axis=3) + draws.normal(0, 8, (count, 1, size, size))
    return torch.from_numpy(blotches.clip(0, 255).astype(np.uint8))


def move(image: Image.Image, affine: tuple[float, ...], resample: int, fill: int) -> Image.Image:
    fill_colour = (fill,) * len(image.getbands())
    return image.transform(image.size, Image.Transform.AFFINE, affine, resample, fillcolor=fill_colour)


def operate(image: Image.Image, name: str, value: float, fill: int) -> Image.Image:
    """One operation in Pillow, on a parameter that is already signed."""
    if name in ENHANCERS:
        return ENHANCERS[name](image).enhance(value)
    if name in ("shearX", "shearY"):
        affine = (1, value, 0, 0, 1, 0) if name == "shearX" else (1, 0, 0, value, 1, 0)
        return move(image, affine, Image.Resampling.BICUBIC, fill)
    if name == "translateX":
        return move(image, (1, 0, value * image.width, 0, 1, 0), 0, fill)
    if name == "translateY":
        return move(image, (1, 0, 0, 0, 1, value * image.height), 0, fill)
    if name == "rotate":
        turned = image.convert("RGBA").rotate(value)
        return Image.composite(turned, Image.new("RGBA", turned.size, (fill,) * 4), turned).convert(image.mode)
    if name in ("posterize", "solarize"):
        result: Image.Image = getattr(ImageOps, name)(image, int(value) if name == "posterize" else value)
    else:
        result = image if name == "identity" else getattr(ImageOps, name)(image)
    return result


def literal_autoaugment(image: Image.Image, policy_name: str, row: np.ndarray) -> Image.Image:
    levels = {
        **dict.fromkeys(["shearX", "shearY"], np.linspace(0, 0.3, 10)),
        **dict.fromkeys(["translateX", "translateY"], np.linspace(0, 150 / 331, 10)),
        **dict.fromkeys(ENHANCERS, np.linspace(0, 0.9, 10)),
        "rotate": np.linspace(0, 30, 10),
        "posterize": np.round(np.linspace(8, 4, 10)),
        "solarize": np.linspace(256, 0, 10),
    }
    sub_policy = POLICIES[policy_name][int(row[0] * SIZES[policy_name])]
    for (name, probability, level), chance, side in zip(sub_policy, row[1:3], row[3:5], strict=True):
        if chance < probability:
            value = levels[name][level] if name in levels else 0.0
            if name in SIGNED:
                value *= -1 if side < 0.5 else 1
            image = operate(image, name, 1 + value if name in ENHANCERS else value, fill=128)
    return image


def to_pillow(image: Tensor) -> Image.Image:
    return Image.fromarray(image[0].numpy() if len(image) == 1 else image.permute(1, 2, 0).contiguous().numpy())


def from_pillow(image: Image.Image) -> np.ndarray:
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("policy_name", SIZES)
def test_autoaugment_equals_the_literal_policy(policy_name: str, channels: int) -> None:
    images, policy = photographs(400, channels), AutoAugment(policy_name)
    rows = policy.draw(400, np.random.default_rng(5))
    result = policy(images, np.random.default_rng(5))
    expected = [
        literal_autoaugment(to_pillow(image), policy_name, row) for image, row in zip(images, rows, strict=True)
    ]
    np.testing.assert_array_equal(result.numpy(), np.stack([from_pillow(image) for image in expected]))
    assert (result != images).flatten(1).any(1).float().mean() > 0.5


@pytest.mark.parametrize("policy_name", SIZES)
def test_the_figures_are_whole(policy_name: str) -> None:
    rows = POLICIES[policy_name]
    assert len(rows) == SIZES[policy_name]
    assert all(len(row) == 2 for row in rows)
    assert all(
        name in OPERATIONS and 0 <= chance <= 1 and level in range(10) for row in rows for name, chance, level in row
    )


def planned(policy_name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The names of operations and their parameters, each `(count, 2)`, that a policy chooses."""
    policy = AutoAugment(policy_name)
    operations, parameters = policy.plan(policy.draw(count, np.random.default_rng(0)))
    return np.array(OPERATIONS)[operations], parameters


@pytest.mark.parametrize("policy_name", SIZES)
def test_sub_policies_are_uniform_and_operations_fire_at_their_rates(policy_name: str) -> None:
    count = 100_000
    names, parameters = planned(policy_name, count)
    # Both operations with their levels identify a sub-policy, up to copies of it.
    centres = np.isin(names, list(ENHANCERS)) * 1.0
    distances = np.where(np.isin(names, list(SIGNED)), np.abs(parameters - centres), 0).round(6)
    both = Counter(zip(*names.T.tolist(), *distances.T.tolist(), strict=True))
    expected_both: Counter[tuple[str, str, float, float]] = Counter()
    expected_each: Counter[tuple[int, str]] = Counter()
    furthest = {**dict.fromkeys(ENHANCERS, 0.9), "shearX": 0.3, "shearY": 0.3}
    for row in POLICIES[policy_name]:
        share = count / SIZES[policy_name]
        signature = [
            round(level / 9 * furthest.get(name, 150 / 331), 6) if name in SIGNED else 0 for name, _, level in row
        ]
        expected_both[row[0][0], row[1][0], signature[0], signature[1]] += share * row[0][1] * row[1][1]
        for turn, (name, chance, _) in enumerate(row):
            expected_each[turn, name] += share * chance
    for key, mean in expected_both.items():
        assert abs(both[key] - mean) <= 4 * np.sqrt(mean), key
    for (turn, name), mean in expected_each.items():
        assert abs((names[:, turn] == name).sum() - mean) <= 4 * np.sqrt(mean * (1 - mean / count)), (turn, name)


def test_signs_are_even_but_rotation_has_none() -> None:
    names, parameters = planned("imagenet", 100_000)
    assert (parameters[names == "rotate"] >= 0).all()
    for name in SIGNED:
        offset = parameters[names == name] - (1 if name in ENHANCERS else 0)
        negative, positive = (offset < 0).sum(), (offset > 0).sum()
        assert abs(int(negative) - int(positive)) <= 4 * np.sqrt(negative + positive), name


@pytest.fixture(params=["cifar10", "svhn", "imagenet"])
def policy(request: pytest.FixtureRequest) -> AutoAugment:
    return AutoAugment(request.param)


def test_equal_draws_give_equal_images_and_leave_the_input(policy: AutoAugment) -> None:
    images = photographs(64)
    before = images.clone()
    first, second = policy(images, np.random.default_rng(1)), policy(images, np.random.default_rng(1))
    assert torch.equal(first, second)
    assert torch.equal(images, before)
    assert first.dtype == torch.uint8
    assert first.shape == images.shape
    assert not torch.equal(first, policy(images, np.random.default_rng(2)))


def test_draws_depend_on_the_number_of_images_alone(policy: AutoAugment) -> None:
    left = []
    for images in (photographs(32), torch.zeros_like(photographs(32)), photographs(32, channels=1, size=16)):
        draws = np.random.default_rng(3)
        policy(images, draws)
        left.append(draws.random())
    assert len(set(left)) == 1


def test_processes_can_share_a_batch(policy: AutoAugment) -> None:
    images = photographs(48)
    whole = policy(images, np.random.default_rng(4))
    drawn = policy.draw(48, np.random.default_rng(4))
    shares = [policy.apply(images[mine], drawn[mine]) for mine in (slice(0, 1), slice(1, 30), slice(30, 48))]
    assert torch.equal(torch.cat(shares), whole)


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'cifar10'"):
        AutoAugment("cifar")
