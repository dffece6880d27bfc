"""The base class of method settings: views and passes per step, requirements, and default training settings.

The `Config` of a method answers these questions without building the method. This module does not import torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from papi.config import CandidateKind, Decay, Optimizer, Schedule, Values

QUICK_EPOCHS = 12


class Passes(NamedTuple):
    """Encoder passes per training step; after the warm-up if it has a different number."""

    forward: int
    backward: int
    warmup: "Passes | None" = None

    @property
    def units(self) -> int:
        """Cost of a step per image: a forward pass is one unit, a backward pass two."""
        return self.forward + 2 * self.backward

    def __str__(self) -> str:
        own = f"{self.forward}f + {self.backward}b"
        return own if self.warmup is None else f"{self.warmup}, after the warm-up {own}"


@dataclass(frozen=True)
class Release:
    """The training settings of a method's authors for one dataset."""

    epochs: int
    lr: float
    weight_decay: float
    schedule: Schedule
    drop_last: bool
    batch_size: int = 256
    optimizer: Optimizer = "sgd"
    decay: Decay = "all"
    clip_norm: float = 0.0  # largest gradient norm; 0 means no limit
    options: Values = field(default_factory=dict)  # settings of the method that differ from its defaults


@dataclass(frozen=True)
class MethodConfig:
    """The settings of a method: a subclass adds fields, with the defaults of its paper."""

    @property
    def view_names(self) -> tuple[str, ...]:
        """The views it needs, in order: `weak`, `strong` or `plain`. Statistics use the first one."""
        return ("weak",)

    @property
    def encoder_passes(self) -> Passes:
        """The cost of a training step."""
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
        """Whether it can learn from samples for which every class is a candidate."""
        return True

    @property
    def needs_shape(self) -> bool:
        """Whether the constructor gets `shape=`, the shape of one sample: `(C, H, W)` or `(d,)`."""
        return False

    @property
    def needs_scale(self) -> bool:
        """Whether the constructor gets `scale=`, the divisor of the network's inputs: one number per channel `(C,)` or
        column `(d,)`."""
        return False

    @property
    def packs_sets(self) -> bool:
        """Whether it accepts packed sets: labels outside have no weight, and confidence is a `uniform_confidence`."""
        return False

    @property
    def idle(self) -> frozenset[str]:
        """Settings that have no effect, given the others; `papi tune` does not search them."""
        return frozenset()

    def doubts(self, rows: int, classes: int) -> tuple[str, ...]:
        """Notes about a run with this batch size."""
        return ()

    @classmethod
    def quick_epochs(cls, given: Mapping[str, Any]) -> int:
        """The number of epochs of a quick run on images with the given settings."""
        return QUICK_EPOCHS

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """Settings of a quick run with this number of epochs, instead of the defaults; given settings take
        precedence."""
        return {}

    @classmethod
    def tabular(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """Additional settings of a quick run on a feature table; they override `quick`."""
        return {}

    @classmethod
    def frozen(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """Additional settings of a quick run on the embeddings of a frozen encoder; they override `quick`."""
        return {}

    @classmethod
    def tuned(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """The same for fine-tuning a pretrained encoder, after the head has been trained."""
        return cls.frozen(epochs, given)

    @classmethod
    def released(
        cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]
    ) -> Release | None:
        """The released settings; those for CIFAR-10 if the dataset has none, None if there is no release.

        `kind` is the kind of synthetic candidate sets, `None` if they are part of the data.
        """
        return None


Row = TypeVar("Row")


def rows_for(dataset: str, rows: Mapping[str, Sequence[Row]]) -> Sequence[Row]:
    """The rows of a release for a dataset; those of CIFAR-10 if the release does not include the dataset."""
    return rows.get(dataset, rows["cifar10"])


def six_digits(value: float) -> float:
    """A value rounded to six significant digits, so that it is easy to type."""
    return float(f"{value:.6g}")
