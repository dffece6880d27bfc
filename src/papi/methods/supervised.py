"""Supervised: the upper bound, an ordinary classifier that is told the true labels.

It is an oracle: it shows how much of what could be learned from these images a method has learned from candidate sets.
Same network, optimizer, schedule and weak view as the methods it bounds; cross-entropy with the true label.

Symbols: none but y, the true label.
"""

from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from papi.methods.losses import wide
from papi.methods.one_view import OneView, OneViewConfig
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


class Supervised(OneView):
    passes = "1f + 1b"
    memory = "nothing (knows the true labels)"
    truth: Tensor

    def __init__(self, network: Network, candidates: Tensor, config: OneViewConfig, truth: Tensor) -> None:
        super().__init__(network, candidates, config)
        self.register_buffer("truth", truth, persistent=False)

    @classmethod
    def needs_truth(cls, config: Any) -> bool:
        return True

    @classmethod
    def packs(cls, config: Any) -> bool:
        return True

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        return StepOutput(cross_entropy(wide(logits), self.truth[batch.index]), logits)
