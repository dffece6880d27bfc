"""What every reader hands on: images as one array, and what is known about them. No torch here: reports read it too."""

from dataclasses import dataclass, replace

import numpy as np

from papi.errors import UserError
from papi.randomness import draws


@dataclass(frozen=True)
class ViewRecipe:
    """What a dataset's images tolerate, for its weak and strong views."""

    flip: bool = True  # mirror left to right with probability 1/2
    crop_padding: int = 4  # reflect the border by so many pixels, cut out the original size at random; 0 for none
    cutout: int = 16  # side of the square that a strong view blackens; 0 for none


@dataclass(frozen=True)
class Dataset:
    """Training images with true labels, candidate sets or both; test images with true labels where there are any."""

    name: str
    class_names: tuple[str, ...]
    images: np.ndarray  # (N, C, H, W) uint8
    mean: tuple[float, ...]  # of pixel values in [0, 1], by channel
    std: tuple[float, ...]
    recipe: ViewRecipe
    labels: np.ndarray | None = None  # (N,) int64; candidate sets are made from them, and training is measured by them
    candidates: np.ndarray | None = None  # (N, K) bool, if the data come with candidate sets
    test_images: np.ndarray | None = None  # (M, C, H, W) uint8
    test_labels: np.ndarray | None = None  # (M,) int64

    def limited(self, count: int | None) -> "Dataset":
        """The first images of each class, `count` in all; without true labels, images spread evenly over the set."""
        if count is None:
            return self
        if count > len(self.images):
            raise UserError(f"--limit {count} is more than the {len(self.images)} training images of {self.name}.")
        if self.labels is None:
            keep = np.sort(draws(0, "limit").permutation(len(self.images))[:count])
        else:
            keep = _balanced(self.labels, count)
        return replace(
            self,
            images=self.images[keep],
            labels=None if self.labels is None else self.labels[keep],
            candidates=None if self.candidates is None else self.candidates[keep],
        )


def _balanced(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of `count` examples, taken class by class in turn, so that class counts differ by at most one."""
    order = np.argsort(labels, kind="stable")
    # The r-th example of every class comes before the (r+1)-th of any: sort by rank within the class.
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    rank = np.arange(len(labels)) - starts[labels[order]]
    return np.sort(order[np.argsort(rank, kind="stable")[:count]])
