"""What training asks of the data besides samples: views of them, and the network's input."""

from typing import Protocol

from torch import Tensor

from papi.randomness import Draws


class Views(Protocol):
    """Makes the views of a batch by name: `weak`, `strong` or `plain` (untouched)."""

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """The view `name` of each sample of `(B, …)`, in the samples' own type and range of values."""


class Normalise(Protocol):
    """Turns samples, or views of them, into what the network takes."""

    def __call__(self, samples: Tensor, /) -> Tensor:
        """`(B, …) float32`, centred and scaled with the statistics of the training samples."""
