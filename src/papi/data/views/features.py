"""Views of feature vectors: what mirroring and cropping are to images, noise and left-out values are to features.

`weak` adds a little noise to every value, `strong` adds more and replaces some values by their column's mean, so that
no single feature can be relied on. Both are in units of each column's spread.
"""

import math

import numpy as np
import torch
from torch import Tensor

from papi.data.dataset import Dataset
from papi.data.views.images import Normalise, Views

WEAK_NOISE = 0.2  # standard deviation, as a share of the column's; at most
STRONGER = 2  # times as much noise in a strong view
FEW_ROWS = 30  # for each column: up to here a network learns a table by heart, and more rows need less noise
STRONG_DROPOUT = 0.2  # share of values that a strong view replaces


class FeatureViews(Views):
    """Makes the views of a feature table by name: `weak`, `strong` or `plain` (untouched)."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], noise: float = WEAK_NOISE) -> None:
        self.mean, self.std, self.noise = torch.tensor(mean), torch.tensor(std), noise

    def __call__(self, name: str, images: Tensor, draws: np.random.Generator) -> Tensor:
        if name == "plain":
            return images
        std, mean = self.std.to(images.device), self.mean.to(images.device)
        noise = torch.from_numpy(draws.standard_normal(images.shape, np.float32)).to(images.device)
        noisy = images + self.noise * (STRONGER if name == "strong" else 1) * std * noise
        if name != "strong":
            return noisy
        dropped = torch.from_numpy(draws.random(images.shape) < STRONG_DROPOUT).to(images.device)
        return torch.where(dropped, mean, noisy)


def noise_for(rows: int, columns: int) -> float:
    """How much noise a weak view adds: it falls with the root of the number of rows, as the error of a mean does."""
    return WEAK_NOISE * min(1, math.sqrt(FEW_ROWS * columns / rows))


class Standardise(Normalise):
    """Features to the network's input: mean 0 and spread 1 by column."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self.mean, self.std = torch.tensor(mean, device=device), torch.tensor(std, device=device)

    def __call__(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.std


def views_of(dataset: Dataset) -> Views:
    """The views that suit a dataset."""
    if dataset.kind != "features":
        return Views(dataset.recipe)
    return FeatureViews(dataset.mean, dataset.std, noise_for(*dataset.samples.shape))


def normaliser(
    shape: tuple[int, ...], mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> Normalise:
    """What turns samples of this shape, images `(C, H, W)` or features `(d,)`, into the network's input."""
    return Standardise(mean, std, device) if len(shape) == 1 else Normalise(mean, std, device, size=shape[1:])
