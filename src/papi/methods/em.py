"""EM: learning from imprecise labels by expectation maximisation (GLWS; Chen et al., ICML 2024).

The true label is a hidden variable. Its distribution is the network's prediction for the weak view, restricted to the
candidates (E-step); all views are trained on it with cross-entropy (M-step). Both happen in one step on one batch, and
no state is kept. Labels outside the set are lowered, and the mean prediction of a batch is kept close to uniform.

Symbols: t target, S candidates, p̄ mean prediction of the batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch

from papi import distributed
from papi.config import CandidateKind
from papi.methods.config import Passes, Release
from papi.methods.losses import (
    balance_loss,
    candidate_likelihood_loss,
    candidate_softmax,
    non_candidate_loss,
    soft_cross_entropy,
    wide,
)
from papi.methods.noise import Tolerant, TolerantConfig
from papi.methods.options import require_not_negative
from papi.methods.ranges import Among, Between
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class EMConfig(TolerantConfig):
    """The defaults are those of the released code.

    The release passes the three views through the network as one batch, and balances the predictions of each process.
    Here each view is a separate batch, and the balance is over the whole batch.
    """

    set_loss: Annotated[Literal["complement", "likelihood"], Among(("complement", "likelihood"))] = "complement"
    """Loss that lowers labels outside the set: `complement`, as released, is the sum of -log(1 - p) over them;
    `likelihood` is -log of the total probability of the candidates."""
    balance_weight: Annotated[float, Between(0.0, 0.5)] = 0.1
    """Weight of the loss that keeps the mean prediction of a batch close to uniform. Use 0 if classes are not equally
    frequent, or if a batch has fewer rows than there are classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_not_negative(self, "balance_weight")

    @property
    def view_names(self) -> tuple[str, ...]:
        return ("weak", "strong", "strong")

    @property
    def encoder_passes(self) -> Passes:
        return Passes(3, 3)

    def doubts(self, rows: int, classes: int) -> tuple[str, ...]:
        """If a batch has fewer rows than classes, even perfect predictions are far from uniform."""
        if self.balance_weight == 0 or rows >= classes:
            return ()
        return (
            f"em keeps the mean prediction of a batch close to uniform, but {rows} rows cannot have {classes} classes: "
            "use a larger --batch-size, or --option balance_weight=0.",
        )

    @classmethod
    def released(
        cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, object]
    ) -> Release:
        """200 epochs in small batches; the learning rate drops twice, or follows a cosine on Fashion-MNIST."""
        schedule: Literal["cosine", "multistep"] = "cosine" if dataset == "fashion-mnist" else "multistep"
        return Release(200, 0.1, 1e-4, schedule, drop_last=True, batch_size=64, decay="matrices", clip_norm=1.0)


class EM(Tolerant):
    """Trains all views on the network's prediction for the weak view, restricted to the candidates."""

    Config = EMConfig
    paper = "Chen et al., ICML"
    year = 2024
    memory = "nothing"
    config: EMConfig

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = [self.network(view).logits for view in batch.views]  # separately: batch norm sees one view at a time
        tolerated = self.tolerance.admit(batch, logits[0], progress)
        weighed = self.prior.weigh(batch, logits[0], tolerated, progress)
        target = candidate_softmax(logits[0].detach(), weighed)
        classification = torch.stack([soft_cross_entropy(each, target) for each in logits]).mean()
        # The complement treats an unlikely candidate as a candidate; the likelihood gives it less weight.
        complement = self.config.set_loss == "complement"
        exclusion = (
            non_candidate_loss(logits[0], tolerated) if complement else candidate_likelihood_loss(logits[0], weighed)
        )
        # Over the whole batch in every process. Each weights it by its share of the rows, so that it counts once.
        balance = balance_loss(distributed.gather_rows(wide(logits[0]).softmax(1)))
        loss = classification + exclusion + self.config.balance_weight * balance
        logs = {"loss_classification": classification, "loss_exclusion": exclusion, "loss_balance": balance}
        return StepOutput(loss, logits[0], logs=logs | self.logs(progress))
