"""The form that all readers produce: samples in one array, and what is known about them. Does not import torch."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from papi.errors import UserError
from papi.randomness import draws

Report = Callable[[str], None]
"""Takes a sentence about a problem. Training stops at the first one (`refuse`); `papi check` collects them all."""

Progress = Callable[[str, int, int], None]
"""Is told what is going on, how much of it is done, and how much there is."""


def refuse(problem: str) -> None:
    """Raise the problem as an error, for callers that need data without faults."""
    raise UserError(problem)


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class ViewRecipe:
    """How the weak and strong views of a dataset's images are made."""

    flip: bool = True  # mirror left to right with probability 1/2
    crop_padding: int = 4  # reflect the border by so many pixels, cut out the original size at random; 0 for none
    cutout: int = 16  # side of the square that a strong view blackens; 0 for none
    policy: str | None = None  # AutoAugment policy of strong views, before the cutout: cifar10, svhn or imagenet
    resized_crop: int | None = None  # instead of crop_padding: a random part (8 % to all), resized to this side


@dataclass(frozen=True)
class Dataset:
    """Training samples with true labels, candidate sets or both; test samples with true labels if there are any.

    Samples are images, or rows of a feature table; then `mean` and `std` are by column.
    """

    name: str
    class_names: tuple[str, ...]
    samples: np.ndarray  # images (N, C, H, W) uint8, or features (N, d) float32
    mean: tuple[float, ...]  # of pixel values in [0, 1], by channel: they normalise the network's input
    std: tuple[float, ...]
    recipe: ViewRecipe = ViewRecipe()
    labels: np.ndarray | None = None  # (N,) int64; to make candidate sets from, and to measure training with
    candidates: np.ndarray | None = None  # (N, K) bool, if the data come with candidate sets
    test_samples: np.ndarray | None = None  # (M, C, H, W) uint8, or (M, d) float32
    test_labels: np.ndarray | None = None  # (M,) int64
    initial_confidence: np.ndarray | None = None  # (N, K) float32 from votes: rows sum to one, zero outside candidates
    groups: np.ndarray | None = None  # (K,) int64, the superclass of each class
    file_names: tuple[str, ...] | None = None  # of the training samples, if they come from files
    rows: np.ndarray | None = None  # (N,) int64, positions of the training samples in what was read; None: in order
    notes: tuple[str, ...] = ()  # what users should know before training, a sentence each

    @property
    def kind(self) -> Literal["images", "features"]:
        """Whether the samples are images or rows of features."""
        return "features" if self.samples.ndim == 2 else "images"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample as the network sees it in evaluation."""
        side = self.recipe.resized_crop
        return tuple(self.samples.shape[1:]) if side is None else (self.samples.shape[1], side, side)

    def measured(self) -> "Dataset":
        """With the mean and std of its own training samples, for data without published constants."""
        mean, std = (column_statistics if self.kind == "features" else pixel_statistics)(self.samples)
        return replace(self, mean=mean, std=std)

    def limited(self, count: int | None) -> "Dataset":
        """The first samples of each class, `count` in all; without true labels, a random part."""
        if count is None:
            return self
        if count > len(self.samples):
            raise UserError(f"--limit {count} is more than the {len(self.samples)} training samples of {self.name}.")
        if self.labels is None:
            return self.taking(np.sort(draws(0, "limit").permutation(len(self.samples))[:count]))
        return self.taking(_balanced(self.labels, count))

    def with_held_out(self, share: float, seed: int) -> "Dataset":
        """Hold out a part of the training samples for testing, if there are true labels but no test samples.

        The part is drawn within each class, so that it has rare classes in their proportion.
        """
        if self.test_samples is not None or self.labels is None or share == 0:
            return self
        held = _held_out(self.labels, share, seed)
        kept = self.taking(np.flatnonzero(~held))
        if not held.any() or not len(kept.samples):
            raise UserError(
                f"{self.name} has {len(self.samples)} samples, too few to hold out {share:.0%} for testing: "
                "give more, or set --data.test-share 0."
            )
        return replace(kept, test_samples=self.samples[held], test_labels=self.labels[held])

    def taking(self, rows: np.ndarray) -> "Dataset":
        """The training samples at these positions, with everything that belongs to them.

        Positions 0 to n - 1 give a view, not a copy, so that samples mapped from a file stay on disk.
        """
        leading = np.array_equal(rows, np.arange(len(rows)))

        def some(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return replace(
            self,
            samples=self.samples[: len(rows)] if leading else self.samples[rows],
            labels=some(self.labels),
            candidates=some(self.candidates),
            initial_confidence=some(self.initial_confidence),
            file_names=None if self.file_names is None else tuple(self.file_names[row] for row in rows),
            rows=rows if self.rows is None else self.rows[rows],
        )


def pixel_statistics(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation by channel of `(N, C, H, W) uint8` as numbers in [0, 1].

    Counting the 256 values in parts is exact and needs no second copy of the images, which may lie on disk.
    """
    counts = np.zeros((images.shape[1], 256), np.int64)
    for start in range(0, len(images), 1000):
        for channel, pixels in enumerate(images[start : start + 1000].swapaxes(0, 1)):
            counts[channel] += np.bincount(pixels.ravel(), minlength=256)
    values = np.arange(256) / 255
    share = counts / counts.sum(1, keepdims=True)
    mean = share @ values
    variance = (share * (values - mean[:, None]) ** 2).sum(1)
    return _numbers(mean), _numbers(np.sqrt(variance).clip(min=1e-3))  # one grey level everywhere has no spread


def column_statistics(features: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation by column of `(N, d)`; a constant column counts as spread 1, to become zero."""
    spread = features.std(0, dtype=np.float64)
    return _numbers(features.mean(0, dtype=np.float64)), _numbers(np.where(spread < 1e-12, 1.0, spread))


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """`(N,) bool`, drawn at random: the share of each class, up to one sample more or less."""
    held = np.zeros(len(labels), bool)
    order = draws(seed, "held-out part").permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    # Along the samples sorted by class, one is held out whenever the share has summed up to the next whole number.
    sums = np.floor(np.arange(len(labels) + 1) * share + 0.5)
    held[order[np.diff(sums) > 0]] = True
    return held


def _balanced(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of `count` samples, taken from the classes in turn, so that class counts differ by at most one."""
    order = np.argsort(labels, kind="stable")
    # The r-th sample of every class comes before the (r+1)-th of any: sort by rank within the class.
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    rank = np.arange(len(labels)) - starts[labels[order]]
    return np.sort(order[np.argsort(rank, kind="stable")[:count]])
