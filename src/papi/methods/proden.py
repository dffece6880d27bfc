"""PRODEN: progressive identification of true labels (Lv et al., ICML 2020).

Train on soft labels: first uniform over each image's candidates, then what the classifier itself says about the image,
restricted to them. The classifier learns easy images first, so the labels it gives itself get better as it does; the
two improve each other without any separate step of disambiguation.

Symbols: w confidence, f logits, Y candidates.
"""

from dataclasses import dataclass

from torch import Tensor

from papi.methods.losses import candidate_softmax, soft_cross_entropy
from papi.methods.noise import Tolerant, TolerantConfig
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.packed import uniform_confidence
from papi.methods.state import Confidence
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class PRODENConfig(TolerantConfig, OneViewConfig):
    """No settings of its own.

    The release takes the labels with w > 0 for the candidates, so one whose probability once underflows is lost for
    good. Here the candidate sets themselves are the mask, and any candidate can come back.
    """


class PRODEN(Tolerant, OneView):
    Config = PRODENConfig
    paper = "Lv et al., ICML"
    year = 2020
    passes = "1f + 1b"
    memory = "N×K confidence"
    confidence: Confidence

    def __init__(self, network: Network, candidates: Tensor, config: PRODENConfig) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        loss = soft_cross_entropy(logits, self.confidence[batch.index])
        # After the loss: an image is trained towards what was thought of it one epoch ago.
        candidates = self.tolerance.admit(batch, logits, progress)
        self.confidence.replace(batch.index, candidate_softmax(logits, candidates))
        return StepOutput(loss, logits, logs=self.tolerance.logs(progress))
