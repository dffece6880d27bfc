"""What passes between the parts of a training step."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Progress:
    """Where a run stands: step `step` of `steps` in epoch `epoch` of `epochs`, all counted from zero."""

    epoch: int
    epochs: int
    step: int
    steps: int
    seed: int

    @property
    def epochs_done(self) -> float:
        """Epochs behind us, with the part of the present one."""
        return self.epoch + self.step / self.steps

    @property
    def fraction(self) -> float:
        """Share of the whole run that is behind us, in [0, 1)."""
        return self.epochs_done / self.epochs


@dataclass(frozen=True)
class Batch:
    """One mini-batch. True labels are not in it, so no method can use them by mistake."""

    index: Tensor  # (B,) int64, positions in the training set, each at most once
    views: tuple[Tensor, ...]  # the network's input, (B, C, H, W) or (B, d), in the order of `MethodConfig.view_names`
    candidates: Tensor  # (B, K) bool


@dataclass(frozen=True)
class StepOutput:
    """What a method returns for a step. `logits` and `prototype_scores` are of the first view, for the statistics."""

    loss: Tensor  # () float
    logits: Tensor  # (B, K)
    prototype_scores: Tensor | None = None  # (B, K)
    logs: dict[str, Tensor] = field(default_factory=dict)  # name → () float, averaged over the epoch
