"""Supervised: the upper bound, an ordinary classifier trained on the true labels.

It is an oracle, to show how close methods that learn from candidate sets come to full supervision. It uses the same
network, optimizer, schedule and weak view as the methods it bounds, and cross-entropy with the true label.

Symbols: y, the true label.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from papi.config import CandidateKind
from papi.methods.config import Release
from papi.methods.losses import wide
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.papi_settings import PaPiConfig
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class SupervisedConfig(OneViewConfig):
    """This method has no settings of its own. It is trained like PaPi, the method that it bounds."""

    @property
    def needs_truth(self) -> bool:
        return True

    @property
    def packs_sets(self) -> bool:
        return True

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """The optimizer settings of PaPi's release."""
        return replace(PaPiConfig.released(dataset, flip_rate, kind, {}), options={})


class Supervised(OneView):
    """Cross-entropy with the true labels."""

    Config = SupervisedConfig
    memory = "nothing (knows the true labels)"
    truth: Tensor

    def __init__(self, network: Network, candidates: Tensor, config: SupervisedConfig, truth: Tensor) -> None:
        super().__init__(network, candidates, config)
        self.register_buffer("truth", truth, persistent=False)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        return StepOutput(cross_entropy(wide(logits), self.truth[batch.index]), logits)
