"""DPLL: revisiting consistency regularization for deep partial-label learning (Wu et al., ICML 2022).

The loss has two terms. The first lowers the probability of labels that are not candidates. The second makes all views
of an image consistent: each is trained towards a shared target, the geometric mean of the views' last predictions,
restricted to the candidates. The second term is phased in slowly, because the target is close to uniform at first.

Symbols: p confidence (the shared target), λ(t) consistency weight, S candidates, f logits of a view.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from papi.config import CandidateKind, Values
from papi.methods.config import Passes, Release, six_digits
from papi.methods.listening import Listening, ListeningConfig
from papi.methods.losses import candidate_softmax, kl_divergence, non_candidate_loss, wide
from papi.methods.options import require_not_negative
from papi.methods.packed import uniform_confidence
from papi.methods.ranges import Among, Between
from papi.methods.schedules import ramp
from papi.methods.state import Confidence
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput

_COMPOSITIONS = {"2SW": ("weak", "strong", "strong"), "3S": ("strong",) * 3, "3W": ("weak",) * 3}


@dataclass(frozen=True)
class DPLLConfig(ListeningConfig):
    """The defaults are those of the released code.

    The release computes log(1.0000001 - p), which stops at -15.9, has no gradient there, and is infinite in half
    precision; here log(1 - p) is exact for logits of any size.
    """

    views: Annotated[Literal["2SW", "3S", "3W"], Among(("2SW", "3W"))] = "2SW"
    """The three views: one weak and two strong (`2SW`), three strong (`3S`) or three weak (`3W`). The loss of
    non-candidates uses the first."""
    consistency_weight: Annotated[float, Between(0.1, 10.0, log=True)] = 1.0
    """Final weight λ of the consistency loss."""
    ramp_epochs: float = 100.0
    """Number of epochs over which the consistency loss is phased in; it is off in the first epoch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_not_negative(self, "consistency_weight", "ramp_epochs")

    @property
    def view_names(self) -> tuple[str, ...]:
        """The three views of the composition."""
        return _COMPOSITIONS[self.views]

    @property
    def encoder_passes(self) -> Passes:
        return Passes(3, 3)

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """The consistency loss is phased in over half of the run, as over 100 of 200 epochs in the release."""
        return {"ramp_epochs": six_digits(epochs / 2)}

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """200 epochs in small batches; the learning rate drops twice."""
        return Release(200, 0.1, 1e-4, "multistep", drop_last=False, batch_size=64)


class DPLL(Listening):
    """Lowers non-candidates and trains all views towards a shared target."""

    Config = DPLLConfig
    paper = "Wu et al., ICML"
    year = 2022
    memory = "N×K confidence"
    config: DPLLConfig
    confidence: Confidence

    def __init__(self, network: Network, candidates: Tensor, config: DPLLConfig) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = [self.network(view).logits for view in batch.views]  # separately: batch norm sees one view at a time
        target = self.confidence[batch.index]
        consistency = torch.stack([kl_divergence(target, each) for each in logits]).sum()
        mean = torch.stack([wide(each) for each in logits]).mean(0)
        tolerated = self.tolerance.admit(batch, mean, progress)
        exclusion = non_candidate_loss(logits[0], tolerated)  # without the prior: an unlikely candidate is not excluded
        weight = self.config.consistency_weight * ramp(progress.epoch, self.config.ramp_epochs)
        # The normalised geometric mean of softmaxes is the softmax of the mean logits. Used from the next epoch on.
        self.confidence.replace(
            batch.index, candidate_softmax(mean, self.prior.weigh(batch, mean, tolerated, progress))
        )
        logs = {"loss_consistency": consistency, "loss_exclusion": exclusion}
        return StepOutput(weight * consistency + exclusion, logits[0], logs=logs | self.logs(progress))
