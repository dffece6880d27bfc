"""Interfaces of views and normalisation, which training applies to samples."""

from typing import Protocol

from torch import Tensor

from papi.randomness import Draws


class Views(Protocol):
    """Makes the views of a batch by name: `weak`, `strong` or `plain` (unchanged)."""

    def __call__(self, name: str, samples: Tensor, draws: Draws, /) -> Tensor:
        """The view `name` of each sample of `(B, …)`, with the type and value range of the samples."""


class Normalise(Protocol):
    """Converts samples, or views of them, to the network's input."""

    def __call__(self, samples: Tensor, /) -> Tensor:
        """`(B, …) float32`, centred and scaled with the statistics of the training samples."""
