"""Batches from samples in one tensor: no worker processes, and views are made on the training device."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from papi import distributed
from papi.data.views.base import Normalise, Views
from papi.methods.packed import Candidates
from papi.randomness import draws, draws_of_rows
from papi.types import Batch

VALUES_AT_ONCE = 3_072_000  # of a network's input, without gradients: a thousand images of 3 x 32 x 32
MOST_ROWS, FEWEST_ROWS = 1000, 16


class Loader:
    """Shuffles in every epoch. A batch depends only on its place in the run, so a run can resume at any step.

    Each process gets its own rows of every batch.
    """

    def __init__(
        self,
        samples: Tensor,
        candidates: Candidates,
        views: Views,
        normalise: Normalise,
        view_names: tuple[str, ...],
        *,
        batch_size: int,
        seed: int,
        drop_last: bool = False,
    ) -> None:
        self.samples, self.candidates = samples, candidates
        self.views, self.normalise, self.view_names = views, normalise, view_names
        self.seed = seed
        self.bounds = batch_bounds(len(samples), batch_size, drop_last)

    def __len__(self) -> int:
        """Steps in an epoch."""
        return len(self.bounds)

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from step `first_step` on."""
        order = torch.from_numpy(draws(self.seed, "shuffle", epoch).permutation(len(self.samples)))
        for step in range(first_step, len(self.bounds)):
            start, end = self.bounds[step]
            yield self._batch(order[start:end].to(self.samples.device), epoch, step)

    def plain(self) -> Iterator[Batch]:
        """Every training sample once, without augmentation and in order; each process gets one contiguous part."""
        own = torch.arange(len(self.samples), device=self.samples.device)[distributed.split(len(self.samples)).own]
        for index in torch.split(own, rows_at_once(values_of(self.samples, self.normalise))):
            yield Batch(index, (self.normalise(self.samples[index]),), self.candidates[index])

    def _batch(self, index: Tensor, epoch: int, step: int) -> Batch:
        own, count = distributed.split(len(index)).own, len(index)
        # Some operations on images fail on an empty batch: a process without rows makes one row and drops it.
        made = own if own.stop > own.start else slice(0, 1)
        samples, index = self.samples[index[made]], index[own]
        views = []
        for position, name in enumerate(self.view_names):
            random = draws_of_rows(draws(self.seed, f"view {position}", epoch, step), made, count)
            views.append(self.normalise(self.views(name, samples, random))[: len(index)])
        return Batch(index, tuple(views), self.candidates[index], count)


def on_device(samples: np.ndarray, device: torch.device) -> Tensor:
    """Samples as one tensor. Without a GPU, samples that are mapped from a file stay there."""
    return torch.from_numpy(samples if samples.ndim == 3 else np.ascontiguousarray(samples)).to(device)


def rows_at_once(values: int, most: int = MOST_ROWS) -> int:
    """How many samples of so many values a network sees at a time without gradients: fewer, the larger they are.

    A layer's output takes some times the memory of its input. At 224 x 224 pixels, a thousand photos would need many
    times as much as a training step.
    """
    return max(FEWEST_ROWS, min(most, VALUES_AT_ONCE // values))


def values_of(samples: Tensor, normalise: Normalise) -> int:
    """How many numbers the network gets of one sample."""
    return normalise(samples[:1]).numel() if len(samples) else 1


def batch_bounds(count: int, size: int, drop_last: bool) -> list[tuple[int, int]]:
    """Start and end of each batch. A single left-over sample joins the batch before it: batch norm needs two."""
    ends = [*range(size, count, size), count] if count else []
    if len(ends) > 1 and count - ends[-2] < (size if drop_last else 2):
        ends.pop()
        if not drop_last:
            ends[-1] = count
    return list(pairwise([0, *ends]))
