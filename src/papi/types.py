"""Data types that the parts of a training step exchange."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Progress:
    """Progress of a run: step `step` of `steps` in epoch `epoch` of `epochs`, counted from zero."""

    epoch: int
    epochs: int
    step: int
    steps: int
    seed: int

    @property
    def epochs_done(self) -> float:
        """Number of completed epochs, including the completed fraction of the current one."""
        return self.epoch + self.step / self.steps

    @property
    def fraction(self) -> float:
        """Completed fraction of the whole run, in [0, 1)."""
        return self.epochs_done / self.epochs


@dataclass(frozen=True)
class Batch:
    """One mini-batch. It contains no true labels, so a method cannot use them by mistake."""

    index: Tensor  # (B,) int64, positions in the training set, each at most once
    views: tuple[Tensor, ...]  # the network's input, (B, C, H, W) or (B, d), in the order of `MethodConfig.view_names`
    candidates: Tensor  # (B, K) bool
    whole: int | None = None  # rows in all processes that share the batch, if known to the loader


@dataclass(frozen=True)
class StepOutput:
    """The output of a method for a step. `logits` and `prototype_scores` belong to the first view."""

    loss: Tensor  # () float
    logits: Tensor  # (B, K)
    prototype_scores: Tensor | None = None  # (B, K)
    logs: dict[str, Tensor] = field(default_factory=dict)  # name → () float, averaged over the epoch
