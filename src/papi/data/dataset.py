"""The dataset class that all readers produce: samples in one array with their labels. Does not import torch."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from papi.data.packed_rows import Matrix, PackedRows
from papi.errors import UserError
from papi.randomness import draws

if TYPE_CHECKING:
    from papi.data.images.photos import Photos

_TOLD = 10  # problems of data that are used all the same; the rest is counted

Report = Callable[[str], None]
"""Takes a sentence about a problem. Training stops at the first one (`refuse`), or goes on without what it is about
(`LeavingOut`); `papi check` collects them all."""

Progress = Callable[[str, int, int], None]
"""Is told what is going on, how much of it is done, and how much there is."""


def refuse(problem: str) -> None:
    """Raise the problem as an error, for callers that need data without faults."""
    raise UserError(problem)


class FileProblem(str):
    """A sentence about a file that cannot be used, which says which one it is."""

    file: Path

    def __new__(cls, sentence: str, file: Path) -> "FileProblem":
        made = super().__new__(cls, sentence)
        made.file = file
        return made


class LeavingOut:
    """A report for training on what is good: it keeps problems, and readers leave out what they are about."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.files: set[Path] = set()  # that cannot be used

    def __call__(self, problem: str) -> None:
        self.problems.append(problem)
        if isinstance(problem, FileProblem):
            self.files.add(problem.file)

    def without_bad(self, files: Sequence[Path]) -> np.ndarray | None:
        """The positions of the files that can be used; None if all can."""
        good = [k for k, file in enumerate(files) if file not in self.files]
        return None if len(good) == len(files) else np.array(good, np.int64)

    def notes(self) -> tuple[str, ...]:
        """How much was left out, and the first of it."""
        if not self.problems:
            return ()
        rest = len(self.problems) - _TOLD
        more = (f"… and {rest:,} more were left out; `papi check` lists them.",) if rest > 0 else ()
        count = len(self.problems)
        first = f"{count:,} problem{'' if count == 1 else 's'} in the data: what cannot be used is left out."
        return (first, *(f"left out: {problem}" for problem in self.problems[:_TOLD]), *more)


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""


Levels = tuple[tuple[str, ...], ...]
"""Of a tree of classes, for each level from the top: the group that each of the K classes is in."""


@dataclass(frozen=True)
class ViewRecipe:
    """How the weak and strong views of a dataset's images are made."""

    flip: bool = True  # mirror left to right with probability 1/2
    crop_padding: int = 4  # reflect the border by so many pixels, cut out the original size at random; 0 for none
    cutout: int = 16  # side of the square that a strong view blackens; 0 for none
    policy: str | None = None  # AutoAugment policy of strong views, before the cutout: cifar10, svhn or imagenet
    resized_crop: int | None = None  # instead of crop_padding: a random part (8 % to all), resized to this side


class Opinions(NamedTuple):
    """Who named which label of which image."""

    annotators: tuple[str, ...]
    said: np.ndarray  # (S, 3) int64: the row in what was read, the annotator, the class
    rows: int  # in what was read, with and without opinions


@dataclass(frozen=True)
class Dataset:
    """Training samples with true labels, candidate sets or both; test samples with true labels if there are any.

    Samples are images, or rows of a feature table; then `mean` and `std` are by column. A table of embeddings has
    several rows for each training sample: the plain view first, then as many weak as strong ones. Photos of different
    sizes fit into no array: samples are then their numbers, until an encoder turns them into embeddings.
    """

    name: str
    class_names: tuple[str, ...]
    samples: np.ndarray  # images (N, C, H, W) uint8, features (N, d) float32, or as below where there are `photos`
    mean: tuple[float, ...]  # of pixel values in [0, 1], by channel: they normalise the network's input
    std: tuple[float, ...]
    recipe: ViewRecipe = ViewRecipe()
    labels: np.ndarray | None = None  # (N,) int64; to make candidate sets from, and to measure training with
    candidates: np.ndarray | None = None  # (N, K) bool, if the data come with candidate sets
    test_samples: np.ndarray | None = None  # (M, C, H, W) uint8, or (M, d) float32
    test_labels: np.ndarray | None = None  # (M,) int64
    prior: np.ndarray | None = None  # (N, K) float32: how likely each candidate is, as votes or weights say. Rows sum
    # to one, positive for every candidate and zero elsewhere. Every guess of a run multiplies it in.
    initial_confidence: Matrix | None = None  # (N, K) float32, of the same form: where a run starts from
    groups: np.ndarray | None = None  # (K,) int64, the superclass of each class
    levels: Levels = ()  # if the classes have a tree
    file_names: tuple[str, ...] | None = None  # of the training samples, if they come from files
    rows: np.ndarray | None = None  # (N,) int64, positions of the training samples in what was read; None: in order
    photos: "Photos | None" = None  # all that were read; samples (N,) int64 count them, or are (N, 1 + 2V, d) float16
    opinions: Opinions | None = None  # of annotators, about all rows that were read
    notes: tuple[str, ...] = ()  # what users should know before training, a sentence each

    @property
    def kind(self) -> Literal["images", "features"]:
        """Whether the samples are images or rows of features."""
        return "features" if self.samples.ndim in (2, 3) else "images"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample as the network sees it in evaluation."""
        if self.kind == "features":
            return (self.samples.shape[-1],)
        if self.photos is not None:
            return self.photos.preparation.shape
        side = self.recipe.resized_crop
        return tuple(self.samples.shape[1:]) if side is None else (self.samples.shape[1], side, side)

    def image(self, number: int, test: bool = False) -> np.ndarray | None:
        """One training or test image `(C, H, W) uint8`, for people to look at; None if samples are not images."""
        samples = self.test_samples if test else self.samples
        if samples is None or self.kind == "features":
            return None
        return np.asarray(samples[number]) if self.photos is None else self.photos[int(samples[number])]

    def measured(self) -> "Dataset":
        """With the mean and std of its own training samples, for data without published constants."""
        mean, std = (column_statistics if self.kind == "features" else pixel_statistics)(self.samples)
        return replace(self, mean=mean, std=std)

    def limited(self, count: int | None) -> "Dataset":
        """The first samples of each class, `count` in all; without true labels, a random part."""
        if count is None:
            return self
        if count > len(self.samples):
            raise UserError(
                f"--limit {count} exceeds the {len(self.samples)} training samples of {self.name}: lower it."
            )
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
                f"{self.name} has {len(self.samples)} samples, which is not enough to hold out {share:.0%} as a test "
                "set: add samples, or set --data.test-share 0."
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
            prior=some(self.prior),
            initial_confidence=_taken(self.initial_confidence, rows),
            file_names=None if self.file_names is None else tuple(self.file_names[row] for row in rows),
            rows=rows if self.rows is None else self.rows[rows],
        )


def _taken(values: Matrix | None, rows: np.ndarray) -> Matrix | None:
    if values is None:
        return None
    return values.taking(rows) if isinstance(values, PackedRows) else values[rows]


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
    """Mean and standard deviation by column of `(N, d)`; a constant column counts as spread 1, to become zero.

    Of embeddings `(N, 1 + 2V, d)`, the plain views count.
    """
    if features.ndim == 3:
        return _embedding_statistics(features)
    spread = features.std(0, dtype=np.float64)
    return _numbers(features.mean(0, dtype=np.float64)), _numbers(np.where(spread < 1e-12, 1.0, spread))


def _embedding_statistics(table: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean of each column and the spread of all of them, a part at a time: embeddings may lie on disk.

    An encoder's columns share one unit, and those with little spread say little: each to its own spread would give
    them as much weight as the others.
    """
    parts = [slice(start, start + 1000) for start in range(0, len(table), 1000)]
    mean = sum(table[part, 0].sum(0, dtype=np.float64) for part in parts) / len(table)
    variance = sum(((table[part, 0] - mean) ** 2).sum() for part in parts) / (len(table) * table.shape[2])
    spread = math.sqrt(variance)
    return _numbers(mean), (1.0 if spread < 1e-12 else spread,) * table.shape[2]


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
