"""CC: the classifier-consistent method (Feng et al., NeurIPS 2020).

If candidate sets are drawn uniformly from all sets that hold the true label, the likelihood of a set is proportional to
the total probability of its members. Maximising it needs no weights and no memory: the network decides by itself how
to share the probability out among the candidates.

Symbols: f logits, Y candidates; the loss is -log Σ_{j in Y} softmax(f)_j.
"""

from dataclasses import dataclass
from typing import Any

from papi.methods.losses import candidate_likelihood_loss
from papi.methods.one_view import OneView, OneViewConfig
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class CCConfig(OneViewConfig):
    """No settings of its own.

    The release takes the logarithm of the summed probabilities, which is infinite once they underflow; here the sum is
    taken in the logarithm.
    """


class CC(OneView):
    Config = CCConfig
    paper = "Feng et al., NeurIPS"
    year = 2020
    passes = "1f + 1b"
    memory = "nothing"

    @classmethod
    def packs(cls, config: Any) -> bool:
        return True

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        return StepOutput(candidate_likelihood_loss(logits, batch.candidates), logits)
