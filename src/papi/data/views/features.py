"""Views of feature vectors, with noise and dropped values instead of flips and crops.

`weak` adds a little noise to every value; `strong` adds more and replaces some values by their column's mean, so that
the network cannot rely on a single feature. Noise is in units of each column's standard deviation.
"""

import math

import numpy as np
import torch
from torch import Tensor

from papi.randomness import Draws

WEAK_NOISE = 0.2  # maximum standard deviation, as a fraction of the column's
STRONGER = 2  # factor for the noise of a strong view
FEW_ROWS = 30  # rows per column up to which a network memorises a table; more rows need less noise
STRONG_DROPOUT = 0.2  # fraction of values that a strong view replaces


class FeatureViews:
    """Makes the views of a feature table by name: `weak`, `strong` or `plain` (unchanged)."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], noise: float = WEAK_NOISE) -> None:
        self.mean, self.std, self.noise = torch.tensor(mean), torch.tensor(std), noise

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """The view `name` of `(B, d) float32`."""
        if name == "plain":
            return samples
        std, mean = self.std.to(samples.device), self.mean.to(samples.device)
        noise = torch.from_numpy(draws.standard_normal(samples.shape, np.float32)).to(samples.device)
        noisy = samples + self.noise * (STRONGER if name == "strong" else 1) * std * noise
        if name != "strong":
            return noisy
        return dropped(noisy, mean, draws)


def dropped(samples: Tensor, mean: Tensor, draws: Draws) -> Tensor:
    """The samples `(B, d)` with some of their values replaced by those of `mean` `(d,)`."""
    lost = torch.from_numpy(draws.random(samples.shape) < STRONG_DROPOUT).to(samples.device)
    return torch.where(lost, mean.to(samples.dtype), samples)


def noise_for(rows: int, columns: int) -> float:
    """The noise of a weak view. It falls with the square root of the number of rows, like the error of a mean."""
    return WEAK_NOISE * min(1, math.sqrt(FEW_ROWS * columns / rows))


class CachedViews:
    """Draws the views of embeddings `(B, 1 + 2V, d)` by name: one of the V weak or strong ones, or the plain one.

    For V = 0, `weak` is the plain view, and `strong` is the plain view with some values replaced by column means.
    """

    def __init__(self, count: int, mean: tuple[float, ...]) -> None:
        self.count, self.mean = count, torch.tensor(mean)  # views of each kind, V

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """The view `name` of each sample: `(B, d)`."""
        if name == "plain" or (name == "weak" and not self.count):
            return samples[:, 0]
        if not self.count:
            return dropped(samples[:, 0], self.mean.to(samples.device), draws)
        first = 1 if name == "weak" else 1 + self.count
        chosen = torch.from_numpy(first + draws.integers(0, self.count, len(samples))).to(samples.device)
        return samples[torch.arange(len(samples), device=samples.device), chosen]


class NormaliseFeatures:
    """Standardises features to mean 0 and standard deviation 1 by column. Of embeddings, it uses the plain view."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...], device: torch.device) -> None:
        self.mean, self.std = torch.tensor(mean, device=device), torch.tensor(std, device=device)

    def __call__(self, samples: Tensor, /) -> Tensor:
        """`(B, d) float32` from `(B, d)` or `(B, 1 + 2V, d)`, standardised."""
        if samples.ndim == 3:
            samples = samples[:, 0]
        return (samples.to(self.mean.device).float() - self.mean) / self.std
