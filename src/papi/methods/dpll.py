"""DPLL: revisiting consistency regularization for deep partial-label learning (Wu et al., ICML 2022).

Two forces. Whatever is not a candidate is surely wrong: push its probability down. And all views of an image should
say the same: pull each towards one shared opinion, the geometric mean of what the views last said, restricted to the
candidates. The pull comes in slowly, while the opinion is still close to uniform.

Symbols: p confidence (the shared opinion), λ(t) consistency weight, S candidates, f logits of a view.
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
    """Which views: weak and two strong ones, three strong, three weak. Non-candidates are pushed down on the first."""
    consistency_weight: Annotated[float, Between(0.1, 10.0, log=True)] = 1.0
    """Weight λ of the pull towards the shared opinion after its ramp."""
    ramp_epochs: float = 100.0
    """Epochs over which that pull comes in; it is off in the first."""

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
        """The pull comes in over half of the run, as it does over 100 of 200 epochs in the release."""
        return {"ramp_epochs": six_digits(epochs / 2)}

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """200 epochs whose rate drops twice, in small batches."""
        return Release(200, 0.1, 1e-4, "multistep", drop_last=False, batch_size=64)


class DPLL(Listening):
    """Pushes non-candidates down, and pulls all views towards one opinion."""

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
        logits = [self.network(view).logits for view in batch.views]  # one by one: batch-norm sees each view alone
        target = self.confidence[batch.index]
        consistency = torch.stack([kl_divergence(target, each) for each in logits]).sum()
        mean = torch.stack([wide(each) for each in logits]).mean(0)
        tolerated = self.tolerance.admit(batch, mean, progress)
        exclusion = non_candidate_loss(logits[0], tolerated)  # an unlikely candidate is still no label outside
        weight = self.config.consistency_weight * ramp(progress.epoch, self.config.ramp_epochs)
        # The normalised geometric mean of softmaxes is the softmax of the mean logits. Used from the next epoch on.
        self.confidence.replace(
            batch.index, candidate_softmax(mean, self.prior.weigh(batch, mean, tolerated, progress))
        )
        logs = {"loss_consistency": consistency, "loss_exclusion": exclusion}
        return StepOutput(weight * consistency + exclusion, logits[0], logs=logs | self.logs(progress))
