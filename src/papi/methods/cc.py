"""CC: the classifier-consistent method (Feng et al., NeurIPS 2020).

If candidate sets are drawn uniformly from all sets that hold the true label, the likelihood of a set is proportional to
the total probability of its members. Maximising it needs no weights and no memory: the network decides by itself how
to share the probability out among the candidates.

Symbols: f logits, Y candidates; the loss is -log Σ_{j in Y} softmax(f)_j.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from papi.config import CandidateKind
from papi.methods.config import Release
from papi.methods.losses import candidate_likelihood_loss
from papi.methods.one_view import OneView, OneViewConfig
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class CCConfig(OneViewConfig):
    """No settings of its own.

    The release takes the logarithm of the summed probabilities, which is infinite once they underflow; here the sum is
    taken in the logarithm.
    """

    @property
    def packs_sets(self) -> bool:
        return True

    @property
    def learns_from_full_sets(self) -> bool:
        """All probabilities together are one, whatever the network says."""
        return False

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """250 epochs of Adam at a constant rate, without augmentation."""
        decay = 1e-5 if dataset == "fashion-mnist" else 1e-3
        return Release(250, 1e-3, decay, "constant", drop_last=False, optimizer="adam", options={"view": "plain"})


class CC(OneView):
    """Maximises the total probability of the candidates."""

    Config = CCConfig
    paper = "Feng et al., NeurIPS"
    year = 2020
    memory = "nothing"

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        # A prior turns it into the likelihood of the set and of what else is known: -log Σ_{j in Y} w_j softmax(f)_j.
        loss = candidate_likelihood_loss(logits, self.admit(batch, logits, progress))
        return StepOutput(loss, logits, logs=self.logs(progress))
