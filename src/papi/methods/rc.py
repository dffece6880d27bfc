"""RC: the risk-consistent method (Feng et al., NeurIPS 2020).

If candidate sets are drawn uniformly from all sets that hold the true label, the ordinary classification risk is a
weighted sum of losses over the candidates, and the weights are the true posterior restricted to them. The classifier
stands in for that posterior: each image is weighted by what the network, just improved on it, says about it.

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
    """No settings of its own.

    The release divides by the candidates' total probability, and a row stays undefined for good once that underflows;
    here the softmax is taken over the candidates alone. It also normalises the rows of all images in every step, which
    changes none of them: here only the batch is touched.
    """

    @property
    def encoder_passes(self) -> Passes:
        """The network is asked once more after its step."""
        return Passes(2, 1)

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """250 epochs of Adam at a constant rate, without augmentation."""
        decay = 1e-5 if dataset == "fashion-mnist" else 1e-3
        return Release(250, 1e-3, decay, "constant", drop_last=False, optimizer="adam", options={"view": "plain"})


class RC(Listening, OneView):
    """Weights the candidates by what the network says of them after each step."""

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
        """Ask the network again after its step; batch-norm statistics take in the batch a second time, as released."""
        logits = self.network(batch.views[0]).logits
        candidates = self.admit(batch, logits, progress)
        self.confidence.replace(batch.index, candidate_softmax(logits, candidates))
