"""The base class of methods that use the set prior (`methods.set_prior`).

These methods keep a confidence, which shows how often labels occur together, and use it in their predictions. Other
methods do not have this option: VALEN infers labels with a second network, LWS and DIRK also weight labels outside the
sets, and CC, EM and neighbour votes store no predictions of the network.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from papi.config import STRENGTHS, is_strength
from papi.errors import UserError
from papi.methods.noise import Tolerant, TolerantConfig
from papi.methods.packed import Candidates
from papi.methods.set_prior import SetPrior
from papi.networks import Network
from papi.types import Batch, Progress


@dataclass(frozen=True)
class ListeningConfig(TolerantConfig):
    """Settings of every method that can use the set prior."""

    set_prior: str = "off"
    """Strength of the prior that the candidate sets themselves provide, from how often labels occur together: `off`,
    `auto` (estimated from the data, fading over the run), or a factor. Use it if each label is confused with similar
    ones; do not use it if candidates come in groups, such as all names in a scene."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_strength(self.set_prior):
            raise UserError(f"--option set_prior must be {STRENGTHS}; got {self.set_prior}.")


class Listening(Tolerant):
    """A method that weights its candidates by the set prior."""

    def __init__(self, network: Network, candidates: Candidates, config: ListeningConfig) -> None:
        super().__init__(network, candidates, config)
        if config.set_prior != "off":
            self.prior.sets = SetPrior(candidates.shape[1], config.set_prior)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        if self.prior.sets is not None:
            assert self.confidence is not None, "a method with a set prior has a confidence"
            self.prior.sets.estimate(self.candidates, self.confidence, progress)
        return super().start_epoch(progress, batches)
