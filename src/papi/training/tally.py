"""Running sums of an epoch's statistics. Those of recent steps stay on the device, so that no step waits for them."""

from typing import NamedTuple

import torch
from torch import Tensor

from papi import distributed
from papi.methods.losses import candidate_argmax, top_label
from papi.types import Batch, StepOutput

RECENT = 50  # steps whose values are read, and summed over processes, in one go
HELD = 2**20  # logits that are kept until their rows are counted: 4 MB in float32


class _Rows(NamedTuple):
    """The outputs of one step for the rows of this process, and what they should have been."""

    logits: Tensor  # (B, K)
    scores: Tensor | None  # (B, K)
    candidates: Tensor  # (B, K) bool
    truth: Tensor  # (B,)


class Tally:
    """Adds up the output of every step; `means` returns the values for the row of the epoch.

    `truth` has the true training labels `(N,)`, if known. They are used only for counting and never reach a method.
    The rows of many steps are counted together, because counting them step by step takes a noticeable share of the
    time of a small network.
    """

    def __init__(self, truth: Tensor | None, sums: dict[str, Tensor] | None = None) -> None:
        self.truth = truth
        self._sums = {name: float(value) for name, value in (sums or {}).items()}
        self._samples: list[int] = []  # of each recent step, in the whole batch
        self._losses: list[dict[str, Tensor]] = []  # of each recent step, () each, of the whole batch
        self._counts: list[dict[str, Tensor]] = []  # of each recent step, () each, of the rows of this process
        self._rows: list[_Rows] = []  # of the last steps, not counted yet

    @property
    def sums(self) -> dict[str, Tensor]:
        """The sums so far, for a checkpoint. Every process must call it."""
        self._read()
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in self._sums.items()}

    def add(self, output: StepOutput, batch: Batch) -> None:
        """Add a step: its losses over the whole batch, and the counts of each process in its part of the batch."""
        self._samples.append(distributed.locate(len(batch.index)).total if batch.whole is None else batch.whole)
        self._losses.append({name: value.detach() for name, value in {"loss": output.loss, **output.logs}.items()})
        if self.truth is not None:
            scores = None if output.prototype_scores is None else output.prototype_scores.detach()
            if self._rows and (self._rows[-1].scores is None) != (scores is None):  # a new phase of the method
                self._count()
            self._rows.append(_Rows(output.logits.detach(), scores, batch.candidates, self.truth[batch.index]))
            if len(self._rows) * output.logits.numel() >= HELD:
                self._count()
        if len(self._samples) == RECENT:
            self._read()

    def _count(self) -> None:
        """Count the rows of the last steps, without waiting for the result."""
        if self._rows:
            self._counts += _count_right(self._rows)
            self._rows = []

    def _read(self) -> None:
        """Add the values of recent steps one after another, so that sums do not depend on when they are read."""
        if not self._samples:
            return
        self._count()
        counts = [count for step in self._counts for count in step.values()]
        numbered = {str(number): count for number, count in enumerate(counts)}
        total = iter(_numbers([*distributed.total(numbered).values()]))
        weights = [whole for whole, step in zip(self._samples, self._losses, strict=True) for _ in step]
        losses = iter(_numbers([loss for step in self._losses for loss in step.values()], weights))
        for whole, step in zip(self._samples, self._losses, strict=True):
            self._sum({name: next(losses) for name in step} | {"batches": 1.0, "samples": float(whole)})
        for step in self._counts:
            for name in step:
                count = next(total)
                self._sum({name: count, f"{name}_squared": count**2} if "_only_right" in name else {name: count})
        self._samples, self._losses, self._counts = [], [], []

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


def _count_right(steps: list[_Rows]) -> list[dict[str, Tensor]]:
    """For each step, count correct training outputs, and those that only one of the two classifiers gets right.

    The steps all have scores of a second classifier, or none has.
    """
    logits = torch.cat([step.logits for step in steps])
    candidates, truth = torch.cat([step.candidates for step in steps]), torch.cat([step.truth for step in steps])
    inside = candidate_argmax(logits, candidates) == truth
    right = {"train_accuracy": inside}
    second = [step.scores for step in steps if step.scores is not None]
    if second:
        scores = torch.cat(second)
        pairs = {
            "": (top_label(logits) == truth, top_label(scores) == truth),
            "_in_candidates": (inside, candidate_argmax(scores, candidates) == truth),
        }
        for suffix, (linear, prototype) in pairs.items():
            right[f"linear_only_right{suffix}"] = linear & ~prototype
            right[f"prototype_only_right{suffix}"] = prototype & ~linear
    parts = torch.split(torch.stack([*right.values()]), [len(step.truth) for step in steps], 1)
    return [dict(zip(right, part.sum(1).unbind(), strict=True)) for part in parts]


def _numbers(values: list[Tensor], weights: list[int] | None = None) -> list[float]:
    """The values of tensors `()`, which may be on several devices, with one wait; times `weights`, if given."""
    if not values:
        return []
    device = values[0].device
    # The values have one type. Converting each of them on its own takes six times as long.
    stacked = torch.stack([value.to(device) for value in values])
    if weights is not None:
        stacked = stacked * torch.tensor(weights, device=device)
    numbers: list[float] = stacked.double().tolist()
    return numbers
