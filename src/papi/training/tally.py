"""Running sums of an epoch's statistics, kept on the device so that no step waits for the host."""

import torch
from torch import Tensor

from papi import distributed
from papi.methods.losses import candidate_argmax
from papi.types import Batch, StepOutput


class Tally:
    """Adds up the output of every step; `means` returns the values for the row of the epoch.

    `truth` has the true training labels `(N,)`, if known. They are used only for counting and never reach a method.
    """

    def __init__(self, truth: Tensor | None, sums: dict[str, Tensor] | None = None) -> None:
        self.truth = truth
        self.sums = sums or {}

    def add(self, output: StepOutput, batch: Batch) -> None:
        """Add a step: its losses over the whole batch, and the counts of each process in its part of the batch."""
        counts = {"samples": torch.full((), len(batch.index), device=batch.index.device)}
        if self.truth is not None:
            counts |= self._count_right(output, batch, self.truth[batch.index])
        counts = distributed.total(counts)
        losses = {"loss": output.loss, **output.logs}
        self._sum({name: value.detach() * counts["samples"] for name, value in losses.items()})
        self._sum({"batches": torch.tensor(1)})
        for name, count in counts.items():
            self._sum({name: count, f"{name}_squared": count**2} if "_only_right" in name else {name: count})

    def _count_right(self, output: StepOutput, batch: Batch, truth: Tensor) -> dict[str, Tensor]:
        """Count correct training outputs, and those that only one of the two classifiers gets right."""
        logits, scores = output.logits.detach(), output.prototype_scores
        inside = candidate_argmax(logits, batch.candidates) == truth
        counts = {"train_accuracy": inside.sum()}
        if scores is None:
            return counts
        right = {
            "": (logits.argmax(1) == truth, scores.argmax(1) == truth),
            "_in_candidates": (inside, candidate_argmax(scores, batch.candidates) == truth),
        }
        for suffix, (linear, prototype) in right.items():
            counts[f"linear_only_right{suffix}"] = (linear & ~prototype).sum()
            counts[f"prototype_only_right{suffix}"] = (prototype & ~linear).sum()
        return counts

    def _sum(self, values: dict[str, Tensor]) -> None:
        for name, value in values.items():
            self.sums[name] = self.sums[name].to(value.device) + value.double() if name in self.sums else value.double()

    def means(self) -> dict[str, float]:
        """Losses as means over samples; counts as means over batches, with their standard deviation."""
        sums = {name: float(value) for name, value in self.sums.items()}
        samples, batches = sums.pop("samples"), sums.pop("batches")
        row: dict[str, float] = {}
        for name, total in sums.items():
            if name.endswith("_squared"):
                counted = name.removesuffix("_squared")
                row[f"{counted}_std"] = max(0.0, total / batches - row[counted] ** 2) ** 0.5
            else:
                row[name] = total / (batches if "_only_right" in name else samples)
        return row
