"""CC: the classifier-consistent method (Feng et al., NeurIPS 2020).

If candidate sets are sampled uniformly from all sets that contain the true label, a set's likelihood is proportional to
the total probability of its members. Maximising it needs no weights and no state: the network itself learns how
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
    """This method has no settings of its own.

    The release takes the logarithm of the summed probabilities, which is infinite once they underflow; this version
    sums in log space.
    """

    @property
    def packs_sets(self) -> bool:
        return True

    @property
    def learns_from_full_sets(self) -> bool:
        """No: the total probability of a full set is always one."""
        return False

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """250 epochs of Adam at a constant learning rate, without augmentation."""
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
        # With a prior, this is the likelihood of the set and the evidence: -log Σ_{j in Y} w_j softmax(f)_j.
        loss = candidate_likelihood_loss(logits, self.admit(batch, logits, progress))
        return StepOutput(loss, logits, logs=self.logs(progress))
