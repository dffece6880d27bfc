"""What the methods share that listen to what their candidate sets say (`methods.set_prior`).

These are the methods that keep a confidence, from which it is known which labels stand in for which, and that make
guesses of it. The others have no such option: VALEN infers its labels by a second network, LWS weighs labels outside
the sets as well, DIRK's targets hold some of them, and CC, EM and neighbour votes remember no answers of the network.
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
    """Settings of every method that can listen to what its candidate sets say."""

    set_prior: str = "off"
    """How much the sets themselves say about which candidate is likelier: `off`, `auto` (as much as the data show,
    fading over the run), or a number that multiplies it. For labels that are confused one by one, as looks do; not for
    those that come in groups, as the names in a scene do."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_strength(self.set_prior):
            raise UserError(f"--option set_prior must be {STRENGTHS}; got {self.set_prior}.")


class Listening(Tolerant):
    """A method whose sets have a say in its guesses, as far as its confidence tells which labels stand in for which."""

    def __init__(self, network: Network, candidates: Candidates, config: ListeningConfig) -> None:
        super().__init__(network, candidates, config)
        if config.set_prior != "off":
            self.prior.sets = SetPrior(candidates.shape[1], config.set_prior)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        if self.prior.sets is not None:
            assert self.confidence is not None, "a method that listens to its sets has a confidence"
            self.prior.sets.estimate(self.candidates, self.confidence, progress)
        return super().start_epoch(progress, batches)
