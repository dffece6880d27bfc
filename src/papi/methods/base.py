"""What every method is: a module that owns its network and its memory, and turns a batch into a loss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from papi.methods.packed import Candidates, PackedSets
from papi.methods.state import Confidence, Prototypes
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class NoOptions:
    """For methods with nothing to set."""


class Method(nn.Module):
    """A method never calls backward, moves tensors or opens files. Only a declared oracle sees true labels.

    A subclass names its views, sets up its state and implements `training_step`. The engine does the rest.
    """

    Config: ClassVar[type[Any]] = NoOptions
    """A frozen dataclass of the method's settings, with the defaults of its paper; `--option NAME=VALUE` sets one."""

    paper: ClassVar[str] = ""
    """Authors and place of publication, as `papi methods` lists them."""
    year: ClassVar[int] = 0
    passes: ClassVar[str] = ""
    """Forward and backward passes through the encoder in a step, as "1f + 1b"."""
    memory: ClassVar[str] = ""
    """What it keeps between steps besides the network."""

    candidates: Candidates

    def __init__(self, network: Network, candidates: Candidates, config: Any) -> None:
        super().__init__()
        self.network = network
        self.config = config
        # The mask is given, not learned: it is stored once with the run, not in every checkpoint.
        if isinstance(candidates, PackedSets):
            self.candidates = candidates
        else:
            self.register_buffer("candidates", candidates, persistent=False)
        self.confidence: Confidence | None = None
        self.prototypes: Prototypes | None = None

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views it wants, in order: `weak`, `strong` or `plain`. Statistics are made of the first."""
        return ("weak",)

    @classmethod
    def passes_with(cls, config: Any) -> str:
        """The passes of a step with these settings, where settings change them."""
        return cls.passes

    @classmethod
    def projects(cls, config: Any) -> bool:
        """Whether the network needs a projector."""
        return False

    @classmethod
    def packs(cls, config: Any) -> bool:
        """Whether it takes packed sets (`papi.methods.packed`): all it believes stays inside them, in `uniform_confidence`."""
        return False

    @classmethod
    def needs_truth(cls, config: Any) -> bool:
        """Whether it is an oracle: then, and only then, the constructor gets `truth=` (the true labels, `(N,)`)."""
        return False

    @classmethod
    def needs_shape(cls, config: Any) -> bool:
        """Whether the constructor gets `shape=` (of one image, `(C, H, W)`)."""
        return False

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        """What needs a look at all samples before an epoch: `batches()` passes over them, untouched and in order.

        True announces a new phase: the optimizer then starts without momentum.
        """
        return False

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        """Forward pass, update of the state and loss, in the method's own order."""
        raise NotImplementedError

    def after_step(self, batch: Batch, progress: Progress) -> None:
        """What follows the optimizer's step."""

    def forward(self, batch: Batch, progress: Progress) -> StepOutput:
        return self.training_step(batch, progress)
