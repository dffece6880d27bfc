"""Running sums of an epoch's statistics. Those of recent steps stay on the device, so that no step waits for them."""

from typing import NamedTuple

import torch
from torch import Tensor

from papi import distributed
from papi.methods.losses import candidate_argmax, top_label
from papi.types import Batch, StepOutput

RECENT = 50  # steps whose values are read, and summed over processes, in one go


class _Step(NamedTuple):
    """The values of one step, not read yet."""

    samples: int  # in the whole batch
    losses: dict[str, Tensor]  # () each, of the whole batch
    counts: dict[str, Tensor]  # () each, of the rows of this process


class Tally:
    """Adds up the output of every step; `means` returns the values for the row of the epoch.

    `truth` has the true training labels `(N,)`, if known. They are used only for counting and never reach a method.
    """

    def __init__(self, truth: Tensor | None, sums: dict[str, Tensor] | None = None) -> None:
        self.truth = truth
        self._sums = {name: float(value) for name, value in (sums or {}).items()}
        self._recent: list[_Step] = []

    @property
    def sums(self) -> dict[str, Tensor]:
        """The sums so far, for a checkpoint. Every process must call it."""
        self._read()
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in self._sums.items()}

    def add(self, output: StepOutput, batch: Batch) -> None:
        """Add a step: its losses over the whole batch, and the counts of each process in its part of the batch."""
        whole = distributed.locate(len(batch.index)).total if batch.whole is None else batch.whole
        losses = {"loss": output.loss, **output.logs}
        counts = {} if self.truth is None else self._count_right(output, batch, self.truth[batch.index])
        self._recent.append(_Step(whole, {name: value.detach() * whole for name, value in losses.items()}, counts))
        if len(self._recent) == RECENT:
            self._read()

    def _count_right(self, output: StepOutput, batch: Batch, truth: Tensor) -> dict[str, Tensor]:
        """Count correct training outputs, and those that only one of the two classifiers gets right."""
        logits, scores = output.logits.detach(), output.prototype_scores
        inside = candidate_argmax(logits, batch.candidates) == truth
        counts = {"train_accuracy": inside.sum()}
        if scores is None:
            return counts
        right = {
            "": (top_label(logits) == truth, top_label(scores) == truth),
            "_in_candidates": (inside, candidate_argmax(scores, batch.candidates) == truth),
        }
        for suffix, (linear, prototype) in right.items():
            counts[f"linear_only_right{suffix}"] = (linear & ~prototype).sum()
            counts[f"prototype_only_right{suffix}"] = (prototype & ~linear).sum()
        return counts

    def _read(self) -> None:
        """Add the values of recent steps one after another, so that sums do not depend on when they are read."""
        counts = [count for step in self._recent for count in step.counts.values()]
        numbered = {str(number): count for number, count in enumerate(counts)}
        total = iter(_numbers([*distributed.total(numbered).values()]))
        losses = iter(_numbers([loss for step in self._recent for loss in step.losses.values()]))
        for step in self._recent:
            self._sum({name: next(losses) for name in step.losses} | {"batches": 1.0, "samples": float(step.samples)})
            for name in step.counts:
                count = next(total)
                self._sum({name: count, f"{name}_squared": count**2} if "_only_right" in name else {name: count})
        self._recent = []

    def _sum(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """Losses as means over samples; counts as means over batches, with their standard deviation."""
        self._read()
        sums = dict(self._sums)
        samples, batches = sums.pop("samples"), sums.pop("batches")
        row: dict[str, float] = {}
        for name, total in sums.items():
            if name.endswith("_squared"):
                counted = name.removesuffix("_squared")
                row[f"{counted}_std"] = max(0.0, total / batches - row[counted] ** 2) ** 0.5
            else:
                row[name] = total / (batches if "_only_right" in name else samples)
        return row


def _numbers(values: list[Tensor]) -> list[float]:
    """The values of tensors `()`, which may be on several devices, with one wait."""
    if not values:
        return []
    device = values[0].device
    # The values have one type. Converting each of them on its own takes six times as long.
    numbers: list[float] = torch.stack([value.to(device) for value in values]).double().tolist()
    return numbers
