"""Batches of a dataset that lies in memory as one tensor: no worker processes, views made on the training device."""

from collections.abc import Iterator

import torch
from torch import Tensor

from papi import distributed
from papi.data.views.images import Normalise, Views
from papi.methods.packed import Candidates
from papi.randomness import draws, draws_of_rows
from papi.types import Batch


class Loader:
    """Shuffles anew each epoch and makes each batch from its place in the run alone, so a run can go on anywhere.

    Of every batch it gives the rows of this process.
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
        """Every training sample once, untouched and in order: the first process has the first of them."""
        own = torch.arange(len(self.samples), device=self.samples.device)[distributed.split(len(self.samples)).own]
        for index in torch.split(own, 1000):
            yield Batch(index, (self.normalise(self.samples[index]),), self.candidates[index])

    def _batch(self, index: Tensor, epoch: int, step: int) -> Batch:
        own, count = distributed.split(len(index)).own, len(index)
        # Not every operation on images takes an empty batch: a process without rows makes one, and leaves it out.
        made = own if own.stop > own.start else slice(0, 1)
        samples, index = self.samples[index[made]], index[own]
        views = []
        for position, name in enumerate(self.view_names):
            random = draws_of_rows(draws(self.seed, f"view {position}", epoch, step), made, count)
            views.append(self.normalise(self.views(name, samples, random))[: len(index)])
        return Batch(index, tuple(views), self.candidates[index])


def batch_bounds(count: int, size: int, drop_last: bool) -> list[tuple[int, int]]:
    """Start and end of each batch. A single left-over sample joins the batch before it: batch-norm needs two."""
    ends = [*range(size, count, size), count] if count else []
    if len(ends) > 1 and count - ends[-2] < (size if drop_last else 2):
        ends.pop()
        if not drop_last:
            ends[-1] = count
    return list(zip([0, *ends[:-1]], ends, strict=True))
