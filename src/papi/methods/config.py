"""What the settings of every method answer: views and passes of a step, what it needs, how it is trained by default.

Nothing has to be built to ask: the `Config` of a method knows. No torch here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from papi.config import CandidateKind, Decay, Optimizer, Schedule, Values

QUICK_EPOCHS = 12


class Passes(NamedTuple):
    """Passes through the encoder in one training step; where a warm-up takes others, those after it."""

    forward: int
    backward: int
    warmup: "Passes | None" = None

    @property
    def units(self) -> int:
        """What a step costs for each image: a forward pass is one unit, a backward pass two."""
        return self.forward + 2 * self.backward

    def __str__(self) -> str:
        own = f"{self.forward}f + {self.backward}b"
        return own if self.warmup is None else f"{self.warmup}, after the warm-up {own}"


@dataclass(frozen=True)
class Release:
    """How the authors of a method train it on one dataset."""

    epochs: int
    lr: float
    weight_decay: float
    schedule: Schedule
    drop_last: bool
    batch_size: int = 256
    optimizer: Optimizer = "sgd"
    decay: Decay = "all"
    clip_norm: float = 0.0  # largest norm of a gradient; 0 is any
    options: Values = field(default_factory=dict)  # settings of the method that are not its defaults


@dataclass(frozen=True)
class MethodConfig:
    """The settings of a method: a subclass adds fields, with the defaults of its paper."""

    @property
    def view_names(self) -> tuple[str, ...]:
        """The views it wants, in order: `weak`, `strong` or `plain`. Statistics are made of the first."""
        return ("weak",)

    @property
    def encoder_passes(self) -> Passes:
        """What a training step costs."""
        return Passes(1, 1)

    @property
    def needs_projector(self) -> bool:
        """Whether the network needs a projector."""
        return False

    @property
    def needs_truth(self) -> bool:
        """Whether it is an oracle: then, and only then, the constructor gets `truth=`, the true labels `(N,)`."""
        return False

    @property
    def learns_from_full_sets(self) -> bool:
        """Whether samples that may be of any class teach it something."""
        return True

    @property
    def needs_shape(self) -> bool:
        """Whether the constructor gets `shape=`, that of one sample: `(C, H, W)` or `(d,)`."""
        return False

    @property
    def needs_scale(self) -> bool:
        """Whether the constructor gets `scale=`, what samples are divided by for the network: a number for each channel
        `(C,)` or column `(d,)`."""
        return False

    @property
    def packs_sets(self) -> bool:
        """Whether it takes packed sets: all it believes stays inside them, in a `uniform_confidence`."""
        return False

    @classmethod
    def quick_epochs(cls, given: Mapping[str, Any]) -> int:
        """The length of a quick run on images, with the settings a person has given."""
        return QUICK_EPOCHS

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """What a quick run of so many epochs sets instead of the defaults; what a person has given comes on top."""
        return {}

    @classmethod
    def frozen(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """What a quick run on features of a frozen encoder sets besides, or in place of `quick`."""
        return {}

    @classmethod
    def released(
        cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]
    ) -> Release | None:
        """The settings of its release; CIFAR-10's for data that the release does not know. None: there is no release.

        `kind` is how candidate sets are made, `None` where they come with the data.
        """
        return None


Row = TypeVar("Row")


def rows_for(dataset: str, rows: Mapping[str, Sequence[Row]]) -> Sequence[Row]:
    """The rows of a release for a dataset; those of CIFAR-10 also stand for data that it does not know."""
    return rows.get(dataset, rows["cifar10"])


def six_digits(value: float) -> float:
    """A value that a person can type again: rounded to six significant digits."""
    return float(f"{value:.6g}")
