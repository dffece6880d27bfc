"""Weak and strong views: ours on whole batches, against a pipeline that processes one Pillow image at a time."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.measure import Line, in_turns, speedup
from papi.data.dataset import ViewRecipe
from papi.data.loader import Loader
from papi.data.views import autoaugment
from papi.data.views.images import ImageViews, NormaliseImages
from papi.randomness import draws

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)
PADDING, HOLE, GREY = 4, 16, (128, 128, 128)
RECIPE = ViewRecipe(flip=True, crop_padding=PADDING, cutout=HOLE, policy="cifar10")

Drawn = dict[str, np.ndarray]  # the random numbers of a batch, one row per image


def photographs(count: int, channels: int, size: int) -> Tensor:
    """Images `(N, C, H, W) uint8` with structure, so that every operation changes something."""
    random = np.random.default_rng(0)
    coarse = random.normal(random.integers(30, 220, (count, channels, 1, 1)), 40, (count, channels, 8, 8))
    places = np.arange(size) * 8 // size
    blotches = coarse[:, :, places][:, :, :, places] + random.normal(0, 8, (count, 1, size, size))
    return torch.from_numpy(np.ascontiguousarray(blotches.clip(0, 255).astype(np.uint8)))


class PillowViews:
    """The views of PaPi's CIFAR-10 recipe for one image: flip, crop, policy, tensor, hole, normalise."""

    def __init__(self, size: int, channels: int, policy: str | None) -> None:
        rows = json.loads(Path(autoaugment.__file__).with_name("autoaugment.json").read_text(encoding="utf-8"))
        self.policy = rows[policy] if policy else []
        self.size, self.channels = size, channels
        self.mean = torch.tensor(MEAN[:channels])[:, None, None]
        self.std = torch.tensor(STD[:channels])[:, None, None]

    def __call__(self, pixels: np.ndarray, strong: bool, drawn: Drawn) -> Tensor:
        image = Image.fromarray(pixels)
        if drawn["mirrored"]:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        image = self.crop(image, int(drawn["row"]) + PADDING, int(drawn["column"]) + PADDING)
        if strong and self.policy:
            image = self.augment(image, drawn["policy"])
        array = np.array(image).reshape(self.size, self.size, self.channels)
        values = torch.from_numpy(array).permute(2, 0, 1).contiguous().float().div(255)
        if strong:
            values = values * hole(self.size, drawn["hole"]).expand_as(values)
        return values.sub_(self.mean).div_(self.std)

    def crop(self, image: Image.Image, top: int, left: int) -> Image.Image:
        """Crop the image after padding it by reflection."""
        wider = [(PADDING, PADDING), (PADDING, PADDING), (0, 0)][: 2 if self.channels == 1 else 3]
        padded = Image.fromarray(np.pad(np.array(image), wider, mode="reflect"))
        return padded.crop((left, top, left + self.size, top + self.size))

    def augment(self, image: Image.Image, row: np.ndarray) -> Image.Image:
        """Apply both operations of a sub-policy, each with its own probability and sign."""
        sub_policy = self.policy[int(row[0] * len(self.policy))]
        for (name, probability, level), chance, side in zip(sub_policy, row[1:3], row[3:5], strict=True):
            if chance < probability:
                image = OPERATIONS[name](image, level / 9, -1 if side < 0.5 else 1)
        return image


def hole(size: int, centre: np.ndarray) -> Tensor:
    """`(H, W)`: zero in a square around the centre, one elsewhere."""
    mask = np.ones((size, size), np.float32)
    top, left = (int(place) - HOLE // 2 for place in centre)
    mask[max(top, 0) : max(top + HOLE, 0), max(left, 0) : max(left + HOLE, 0)] = 0
    return torch.from_numpy(mask)


def _move(image: Image.Image, affine: tuple[float, ...], resample: int = Image.Resampling.NEAREST) -> Image.Image:
    fill = GREY[: len(image.getbands())]
    return image.transform(image.size, Image.Transform.AFFINE, affine, resample, fillcolor=fill)


_FURTHEST = 150 / 331
OPERATIONS: dict[str, Callable[[Image.Image, float, int], Image.Image]] = {
    "shearX": lambda i, m, s: _move(i, (1, 0.3 * m * s, 0, 0, 1, 0), Image.Resampling.BICUBIC),
    "shearY": lambda i, m, s: _move(i, (1, 0, 0, 0.3 * m * s, 1, 0), Image.Resampling.BICUBIC),
    "translateX": lambda i, m, s: _move(i, (1, 0, _FURTHEST * m * i.width * s, 0, 1, 0)),
    "translateY": lambda i, m, s: _move(i, (1, 0, 0, 0, 1, _FURTHEST * m * i.height * s)),
    "rotate": lambda i, m, s: i.rotate(30 * m, fillcolor=GREY[: len(i.getbands())]),
    "color": lambda i, m, s: ImageEnhance.Color(i).enhance(1 + 0.9 * m * s),
    "contrast": lambda i, m, s: ImageEnhance.Contrast(i).enhance(1 + 0.9 * m * s),
    "sharpness": lambda i, m, s: ImageEnhance.Sharpness(i).enhance(1 + 0.9 * m * s),
    "brightness": lambda i, m, s: ImageEnhance.Brightness(i).enhance(1 + 0.9 * m * s),
    "posterize": lambda i, m, s: ImageOps.posterize(i, round(8 - 4 * m)),
    "solarize": lambda i, m, s: ImageOps.solarize(i, 256 - 256 * m),  # type: ignore[arg-type]
    "autocontrast": lambda i, m, s: ImageOps.autocontrast(i),
    "equalize": lambda i, m, s: ImageOps.equalize(i),
    "invert": lambda i, m, s: ImageOps.invert(i),
}


def draw(count: int, views: PillowViews, strong: bool, random: np.random.Generator) -> Drawn:
    """The random numbers that our views draw for a batch, in the same order, so that both produce the same views."""
    drawn: Drawn = {
        "row": random.integers(-PADDING, PADDING + 1, count),
        "column": random.integers(-PADDING, PADDING + 1, count),
        "mirrored": random.random(count) < 0.5,
    }
    if strong:
        if views.policy:
            drawn["policy"] = random.random((count, 5))
        drawn["hole"] = np.stack([random.integers(0, views.size, count) for _ in range(2)], 1)
    return drawn


def one_by_one(views: PillowViews, pixels: np.ndarray, strong: bool, drawn: Drawn) -> Tensor:
    """A batch of views of images `(B, H, W[, C])`."""
    rows = [{name: values[i] for name, values in drawn.items()} for i in range(len(pixels))]
    return torch.stack([views(image, strong, row) for image, row in zip(pixels, rows, strict=True)])


class PillowDataset(Dataset[tuple[Tensor, Tensor, Tensor, int]]):
    """A dataset for a DataLoader: both views of an image, its candidates and its index."""

    def __init__(self, pixels: np.ndarray, candidates: Tensor, views: PillowViews) -> None:
        self.pixels, self.candidates, self.views = pixels, candidates, views

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor, int]:
        random = np.random.default_rng(index)
        made = []
        for strong in (False, True):
            drawn = {name: values[0] for name, values in draw(1, self.views, strong, random).items()}
            made.append(self.views(self.pixels[index], strong, drawn))
        return made[0], made[1], self.candidates[index], index


def measure(quick: bool) -> Iterator[Line]:
    batch, size, times = 256, 32, 5 if quick else 15
    images = photographs(4 * batch, 3, size)
    pixels = images.permute(0, 2, 3, 1).contiguous().numpy()
    ours, normalise = ImageViews(RECIPE), NormaliseImages(MEAN, STD, torch.device("cpu"))
    plain = PillowViews(size, 3, "cifar10")

    def in_batches() -> list[Tensor]:
        names = enumerate(("weak", "strong"))
        return [normalise(ours(name, images[:batch], draws(0, f"view {k}"))) for k, name in names]

    def by_pillow() -> list[Tensor]:
        return [
            one_by_one(plain, pixels[:batch], strong, draw(batch, plain, strong, draws(0, f"view {int(strong)}")))
            for strong in (False, True)
        ]

    for mine, reference in zip(in_batches(), by_pillow(), strict=True):
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-5)  # a grey level is 0.016, so all are equal
    yield speedup("weak and strong views, 32x32x3, B=256, vs. Pillow", in_turns([by_pillow, in_batches], times))

    candidates = torch.ones(len(images), 10, dtype=torch.bool)
    loader = Loader(images, candidates, ours, normalise, ("weak", "strong"), batch_size=batch, seed=0)
    workers = DataLoader(PillowDataset(pixels, candidates, plain), batch, shuffle=True, num_workers=2,
                         persistent_workers=True)  # fmt: skip
    for _ in workers:
        pass  # worker processes start once and stay alive
    times = 2 if quick else 5
    seconds = in_turns([lambda: list(workers), lambda: list(loader.epoch(0))], times)
    per_batch = [each / len(loader) for each in seconds]
    yield speedup("loading batches from memory, vs. DataLoader, 2 workers", per_batch)
