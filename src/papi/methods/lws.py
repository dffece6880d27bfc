"""LWS: the leveraged weighted loss (Wen et al., ICML 2021).

Each class of each image is a binary problem: candidates should score high, all other labels low. Weights emphasise the
most likely candidate and the most likely non-candidate; the network updates them after each step. β balances the two
sides: how much lowering non-candidates counts compared with raising candidates.

Symbols: w weights, g logits, ψ the binary loss (sigmoid or cross-entropy), β `beta`, Y candidates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import torch
from torch import Tensor

from papi import distributed
from papi.config import CandidateKind
from papi.methods.config import Passes, Release
from papi.methods.losses import candidate_softmax, leveraged_cross_entropy, leveraged_sigmoid
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.options import require_not_negative
from papi.methods.ranges import Among, Between
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput

T = TypeVar("T")
_LARGEST_RATE = 0.5  # largest flip rate in the released commands


@dataclass(frozen=True)
class LWSConfig(OneViewConfig):
    """The defaults are those of the released commands for CIFAR-10.

    The release's sigmoid has no gradient where a logit is exactly 0, and its cross-entropy adds 1e-8 inside logarithms
    and sums; here both are the plain functions, in a form that stays finite.
    """

    loss: Annotated[Literal["sigmoid", "cross-entropy"], Among(("sigmoid", "cross-entropy"))] = "sigmoid"
    """The binary loss ψ: `sigmoid` is bounded, `cross-entropy` the paper's alternative."""
    beta: Annotated[float, Between(0.0, 4.0)] = 1.0
    """Weight of the non-candidates: 1 or 2 in the paper; 0 ignores them."""

    def __post_init__(self) -> None:
        require_not_negative(self, "beta")

    @property
    def encoder_passes(self) -> Passes:
        """One more forward pass follows the optimizer's step."""
        return Passes(2, 1)

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """250 epochs without augmentation, with β and a learning rate, halved every 50, that depend on loss and data.

        There are no commands for instance-dependent sets, which have no flip rate; they use those of the largest rate.
        """
        rate = _LARGEST_RATE if kind == "instance-dependent" else flip_rate
        lr, decay, beta = 0.05, 1e-3, 1.0
        if given.get("loss") == "cross-entropy":
            if dataset == "fashion-mnist":
                lr, beta = 0.1, _nearest({0.1: 2.0, 0.3: 1.0, 0.5: 2.0}, rate)
            else:
                lr, decay, beta = 0.01, 0.01, _nearest({0.1: 1.0, 0.3: 2.0, 0.5: 1.0}, rate)
        elif dataset == "fashion-mnist":
            lr, beta = _nearest({0.1: (0.05, 2.0), 0.3: (0.1, 1.0), 0.5: (0.1, 1.0)}, rate)
        options = {"view": "plain", "beta": beta}
        return Release(250, lr, decay, "exponential", drop_last=False, options=options)


def _nearest(by_rate: Mapping[float, T], flip_rate: float) -> T:
    return by_rate[min(by_rate, key=lambda rate: abs(rate - flip_rate))]


class LWS(OneView):
    """Weights a binary loss for each class of each image."""

    Config = LWSConfig
    paper = "Wen et al., ICML"
    year = 2021
    memory = "N×K weights"
    config: LWSConfig
    weights: Tensor

    def __init__(self, network: Network, candidates: Tensor, config: LWSConfig) -> None:
        super().__init__(network, candidates, config)
        # Not a Confidence: in each row, the weights of the candidates sum to one, and so do those of the others.
        self.register_buffer("weights", torch.full(candidates.shape, 1 / candidates.shape[1]))

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        leveraged = leveraged_sigmoid if self.config.loss == "sigmoid" else leveraged_cross_entropy
        loss = leveraged(logits, batch.candidates, self.weights[batch.index], self.config.beta)
        return StepOutput(loss, logits, logs=self.logs(progress))

    @torch.no_grad()
    def after_step(self, batch: Batch, progress: Progress) -> None:
        """Predict again after the optimizer's step; as released, this updates the batch-norm statistics again."""
        logits, inside = self.network(batch.views[0]).logits, batch.candidates
        believed = candidate_softmax(logits, self.admit(batch, logits, progress))
        # A full set has no labels outside: its second softmax is undefined and not used.
        weights = torch.where(inside, believed, candidate_softmax(logits, ~inside))
        index, weights = distributed.locate(len(batch.index)).gather_all(batch.index, weights)
        self.weights[index] = weights.to(self.weights.dtype)
