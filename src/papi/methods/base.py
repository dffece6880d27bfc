"""What every method is: a module that owns its network and its memory, and turns a batch into a loss."""

from collections.abc import Callable, Iterator
from typing import ClassVar

from torch import Tensor, nn

from papi.methods.config import MethodConfig
from papi.methods.packed import Candidates, PackedSets
from papi.methods.prior import Prior
from papi.methods.state import AveragedNetwork, Confidence, Prototypes
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


class Method(nn.Module):
    """A method never calls backward, moves tensors or opens files. Only a declared oracle sees true labels.

    A subclass names its `Config`, sets up its state and implements `training_step`. The engine does the rest.
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig
    """The method's settings, with the defaults of its paper; `--option NAME=VALUE` sets one. They also say what the
    method needs (views, a projector, …) and how it is trained by default."""

    paper: ClassVar[str] = ""
    """Authors and place of publication, as `papi methods` lists them."""
    year: ClassVar[int] = 0
    memory: ClassVar[str] = ""
    """What it keeps between steps besides the network."""

    candidates: Candidates

    def __init__(self, network: Network, candidates: Candidates, config: MethodConfig) -> None:
        super().__init__()
        self.network = network
        self.config = config
        # The mask is given, not learned: it is stored once with the run, not in every checkpoint.
        if isinstance(candidates, PackedSets):
            self.candidates = candidates
        else:
            self.register_buffer("candidates", candidates, persistent=False)
        self.prior = Prior()
        self.averaged: AveragedNetwork[Network] | None = None
        self.confidence: Confidence | None = None
        self.prototypes: Prototypes | None = None

    @property
    def result(self) -> Network:
        """The network to measure and to keep: the averaged one where weights are averaged."""
        return self.network if self.averaged is None else self.averaged.value

    def give_prior(self, shares: Tensor, strength: str) -> None:
        """Know how likely each candidate is, `(N, K)`, and how far to trust that; confidence starts from it."""
        self.prior.give(self.candidates, shares, strength)
        known = self.prior.shares(slice(None), self.candidates[:])
        if known is not None and self.confidence is not None:
            self.confidence.start_from(known)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        """What needs a look at all samples before an epoch: `batches()` passes over them, untouched and in order.

        True announces a new phase: the optimizer then starts without momentum.
        """
        self.prior.estimate()
        return False

    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """What each label of a batch counts in a guess from these logits, `(B, K)`, for `candidate_softmax`.

        That is the mask of the candidates, unless something is known that makes some of them likelier than others.
        """
        return self.prior.weigh(batch, logits, batch.candidates, progress)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """What a row of the log says about how sets are read, besides the terms of the loss."""
        return self.prior.logs(progress)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        """Forward pass, update of the state and loss, in the method's own order."""
        raise NotImplementedError

    def after_step(self, batch: Batch, progress: Progress) -> None:
        """What follows the optimizer's step."""

    def forward(self, batch: Batch, progress: Progress) -> StepOutput:
        """A training step, so that wrappers of modules wrap the whole method."""
        return self.training_step(batch, progress)
