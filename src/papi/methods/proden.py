"""PRODEN: progressive identification of true labels (Lv et al., ICML 2020).

The classifier is trained on soft labels: at first uniform over each image's candidates, then its own predictions,
restricted to the candidates. It learns easy images first, so its soft labels improve as it does, without a separate
disambiguation step.

Symbols: w confidence, f logits, Y candidates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from papi.config import CandidateKind
from papi.methods.config import Release
from papi.methods.listening import Listening, ListeningConfig
from papi.methods.losses import candidate_softmax, soft_cross_entropy
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.packed import uniform_confidence
from papi.methods.state import Confidence
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class PRODENConfig(ListeningConfig, OneViewConfig):
    """This method has no settings of its own.

    The released code treats labels with w > 0 as the candidates, so a candidate whose probability underflows is lost.
    Here the candidate sets themselves are the mask, so any candidate can recover.
    """

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """500 epochs at a constant learning rate, without augmentation."""
        lr, decay = (0.01, 1e-5) if dataset == "fashion-mnist" else (0.05, 1e-3)
        return Release(500, lr, decay, "constant", drop_last=True, options={"view": "plain"})


class PRODEN(Listening, OneView):
    """Trains on the classifier's own predictions from the previous epoch."""

    Config = PRODENConfig
    paper = "Lv et al., ICML"
    year = 2020
    memory = "N×K confidence"
    confidence: Confidence

    def __init__(self, network: Network, candidates: Tensor, config: PRODENConfig) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        loss = soft_cross_entropy(logits, self.confidence[batch.index])
        # After the loss, so that an image is trained on the prediction of the previous epoch.
        candidates = self.admit(batch, logits, progress)
        self.confidence.replace(batch.index, candidate_softmax(logits, candidates))
        return StepOutput(loss, logits, logs=self.logs(progress))
