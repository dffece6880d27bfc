"""EM: learning from imprecise labels by expectation maximisation (GLWS; Chen et al., ICML 2024).

The true label is a hidden variable. What the network says about the weak view, restricted to the candidates, is its
distribution (E-step); all views learn it by cross-entropy (M-step). Both are one step on one batch, and nothing is
remembered. Labels outside the set are pushed down, and the mean answer of a batch is kept close to uniform.

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
    Here every view is a batch of its own, and the balance is that of the whole batch.
    """

    set_loss: Annotated[Literal["complement", "likelihood"], Among(("complement", "likelihood"))] = "complement"
    """How labels outside the set are pushed down: `complement`, as released, takes -log(1 - p) for each of them;
    `likelihood` takes -log of the total probability of the candidates."""
    balance_weight: Annotated[float, Between(0.0, 0.5)] = 0.1
    """Weight of keeping the mean prediction of a batch close to uniform. Take 0 where classes are not equally frequent,
    or where a batch has fewer rows than there are classes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_not_negative(self, "balance_weight")

    @property
    def view_names(self) -> tuple[str, ...]:
        return ("weak", "strong", "strong")

    @property
    def encoder_passes(self) -> Passes:
        return Passes(3, 3)

    @classmethod
    def released(
        cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, object]
    ) -> Release:
        """200 epochs in small batches; the rate drops twice, or follows a cosine on Fashion-MNIST."""
        schedule: Literal["cosine", "multistep"] = "cosine" if dataset == "fashion-mnist" else "multistep"
        return Release(200, 0.1, 1e-4, schedule, drop_last=True, batch_size=64, decay="matrices", clip_norm=1.0)


class EM(Tolerant):
    """All views learn what the network says about the weak one, within the candidates."""

    Config = EMConfig
    paper = "Chen et al., ICML"
    year = 2024
    memory = "nothing"
    config: EMConfig

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = [self.network(view).logits for view in batch.views]  # one by one: batch-norm sees each view alone
        tolerated = self.tolerance.admit(batch, logits[0], progress)
        weighed = self.prior.weigh(batch, logits[0], tolerated, progress)
        target = candidate_softmax(logits[0].detach(), weighed)
        classification = torch.stack([soft_cross_entropy(each, target) for each in logits]).mean()
        # An unlikely candidate is still no label outside, but adds less to the likelihood of what is known.
        complement = self.config.set_loss == "complement"
        exclusion = (
            non_candidate_loss(logits[0], tolerated) if complement else candidate_likelihood_loss(logits[0], weighed)
        )
        # Of the whole batch in every process. Each counts it by its share of the rows, so that it counts once.
        balance = balance_loss(distributed.gather_rows(wide(logits[0]).softmax(1)))
        loss = classification + exclusion + self.config.balance_weight * balance
        logs = {"loss_classification": classification, "loss_exclusion": exclusion, "loss_balance": balance}
        return StepOutput(loss, logits[0], logs=logs | self.logs(progress))
