"""Batches from samples in one tensor: no worker processes, and views are made on the training device.

Samples that do not fit into memory stay in their file, and a background thread reads the rows of the next batches.
"""

import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from papi import distributed
from papi.data.ahead import made_ahead
from papi.data.views.base import Normalise, Views
from papi.methods.packed import Candidates
from papi.randomness import draws, draws_of_rows
from papi.types import Batch

VALUES_AT_ONCE = 3_072_000  # of a network's input, without gradients: a thousand images of 3 x 32 x 32
MOST_ROWS, FEWEST_ROWS = 1000, 16


class Loader:
    """Shuffles in every epoch. A batch depends only on its place in the run, so a run can resume at any step.

    Each process gets its own rows of every batch. Batches are on the device of the candidates. With `ahead`, the next
    samples are read in the background; this makes sense if they are in a file or on another device.
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
        ahead: bool = False,
    ) -> None:
        self.samples, self.candidates = samples, candidates
        self.device, self.ahead = candidates.device, ahead
        self.views, self.normalise, self.view_names = views, normalise, view_names
        self.seed = seed
        self.bounds = batch_bounds(len(samples), batch_size, drop_last)

    def __len__(self) -> int:
        """Steps in an epoch."""
        return len(self.bounds)

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from step `first_step` on."""
        order = torch.from_numpy(draws(self.seed, "shuffle", epoch).permutation(len(self.samples)))
        parts = [_part(order[start:end]) for start, end in self.bounds[first_step:]]
        rows = (part.whole[part.made] for part in parts)
        with closing(made_ahead(self._read, rows) if self.ahead else (self._read(each) for each in rows)) as read:
            for step, (part, samples) in enumerate(zip(parts, read, strict=True), first_step):
                yield self._batch(part, samples, epoch, step)

    def plain(self) -> Iterator[Batch]:
        """Every training sample once, without augmentation and in order; each process gets one contiguous part."""
        own = torch.arange(len(self.samples), device=self.samples.device)[distributed.split(len(self.samples)).own]
        for index in torch.split(own, rows_at_once(values_of(self.samples, self.normalise))):
            samples, index = self._read(index), index.to(self.device)
            yield Batch(index, (self.normalise(samples),), self.candidates[index])

    def _read(self, index: Tensor) -> Tensor:
        """These samples, on the device. A copy from pinned memory does not wait for the GPU."""
        # Copies whole rows, which takes a tenth of the time of indexing.
        rows = self.samples.index_select(0, index.to(self.samples.device))
        return rows if rows.device == self.device else rows.pin_memory().to(self.device, non_blocking=True)

    def _batch(self, part: "_Part", samples: Tensor, epoch: int, step: int) -> Batch:
        index, count = part.whole[part.own].to(self.device), len(part.whole)
        views = []
        for position, name in enumerate(self.view_names):
            random = draws_of_rows(draws(self.seed, f"view {position}", epoch, step), part.made, count)
            views.append(self.normalise(self.views(name, samples, random))[: len(index)])
        return Batch(index, tuple(views), self.candidates[index], count)


class _Part(NamedTuple):
    """The rows of a batch that this process holds."""

    whole: Tensor  # positions of the whole batch
    own: slice
    made: slice  # some operations on images fail on an empty batch: a process without rows makes one and drops it


def _part(index: Tensor) -> _Part:
    own = distributed.split(len(index)).own
    return _Part(index, own, own if own.stop > own.start else slice(0, 1))


def on_device(samples: np.ndarray, device: torch.device) -> Tensor:
    """Samples as one tensor. Those mapped from a file stay there without a GPU, or if they do not fit on it."""
    with warnings.catch_warnings():  # nobody writes to samples
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        tensor = torch.from_numpy(samples if samples.ndim == 3 else np.ascontiguousarray(samples))
    if device.type == "cuda" and is_mapped(samples) and samples.nbytes > torch.cuda.mem_get_info(device)[0] // 2:
        return tensor
    return tensor.to(device)


def is_mapped(samples: np.ndarray) -> bool:
    """Whether samples are mapped from a file, as a whole or in part."""
    array: object = samples
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


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
