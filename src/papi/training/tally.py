"""Running sums of an epoch's statistics, kept on the device so that no step waits for the host."""

import torch
from torch import Tensor

from papi import distributed
from papi.methods.losses import candidate_argmax
from papi.types import Batch, StepOutput


class Tally:
    """Takes in the output of every step; `means` gives the row of the epoch.

    `truth` are the true training labels `(N,)`, where known. They are counted with and never reach a method.
    """

    def __init__(self, truth: Tensor | None, sums: dict[str, Tensor] | None = None) -> None:
        self.truth = truth
        self.sums = sums or {}

    def add(self, output: StepOutput, batch: Batch) -> None:
        """Take in a step: its losses, which are of the whole batch, and what each process counts in its part of it."""
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
        """How often the training outputs are right, and how often only one of the two classifiers is."""
        logits, scores = output.logits.detach(), output.prototype_scores
        counts = {"train_accuracy": (candidate_argmax(logits, batch.candidates) == truth).sum()}
        if scores is None:
            return counts
        for suffix, mask in (("", torch.ones_like(batch.candidates)), ("_in_candidates", batch.candidates)):
            linear, prototype = (candidate_argmax(values, mask) == truth for values in (logits, scores))
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
