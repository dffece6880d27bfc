"""RC: the risk-consistent method (Feng et al., NeurIPS 2020).

If candidate sets are sampled uniformly from all sets that contain the true label, the classification risk is a weighted
sum of losses over the candidates, weighted by the true posterior restricted to them. The classifier approximates that
posterior: the weights of an image are the network's predictions right after a training step on it.

Symbols: w confidence (the weights p(y = i | x) / Σ_{j in Y} p(y = j | x)), f logits, Y candidates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from papi.config import CandidateKind
from papi.methods.config import Passes, Release
from papi.methods.listening import Listening, ListeningConfig
from papi.methods.losses import candidate_softmax, soft_cross_entropy
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.packed import uniform_confidence
from papi.methods.state import Confidence
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class RCConfig(ListeningConfig, OneViewConfig):
    """This method has no settings of its own.

    The released code divides by the total probability of the candidates, and a row stays undefined once that
    underflows; here the softmax is restricted to the candidates. It also normalises the rows of all images in every
    step, which has no effect; here only the rows of the batch are updated."""

    @property
    def encoder_passes(self) -> Passes:
        """One more forward pass follows the optimizer's step."""
        return Passes(2, 1)

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """250 epochs of Adam at a constant learning rate, without augmentation."""
        decay = 1e-5 if dataset == "fashion-mnist" else 1e-3
        return Release(250, 1e-3, decay, "constant", drop_last=False, optimizer="adam", options={"view": "plain"})


class RC(Listening, OneView):
    """Weights the candidates by the network's predictions after each step."""

    Config = RCConfig
    paper = "Feng et al., NeurIPS"
    year = 2020
    memory = "N×K confidence"
    confidence: Confidence

    def __init__(self, network: Network, candidates: Tensor, config: RCConfig) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        loss = soft_cross_entropy(logits, self.confidence[batch.index])
        return StepOutput(loss, logits, logs=self.logs(progress))

    @torch.no_grad()
    def after_step(self, batch: Batch, progress: Progress) -> None:
        """Predict again after the optimizer's step; as released, this updates the batch-norm statistics again."""
        logits = self.network(batch.views[0]).logits
        candidates = self.admit(batch, logits, progress)
        self.confidence.replace(batch.index, candidate_softmax(logits, candidates))
