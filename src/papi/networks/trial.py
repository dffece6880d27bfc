"""A trial pass through an outside encoder before training, to check its input and the width of its features."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from papi.errors import UserError
from papi.networks.registry import explained, kind_of

_SAMPLES = 2


def feature_width(encoder: nn.Module, input_shape: tuple[int, ...], name: str) -> int:
    """D of an encoder's features `(B, D)`. Any other output raises a UserError about `name`.

    The encoder and torch's global generator are unchanged, except that lazy layers learn their input size and
    initialise their weights.
    """
    try:
        with _evaluating(encoder), torch.no_grad():
            features: object = encoder(torch.zeros(_SAMPLES, *input_shape))
    except UserError:
        raise
    except Exception as error:  # an encoder can raise anything
        raise UserError(
            f"the network {name} fails on a batch of {(_SAMPLES, *input_shape)} ({explained(error)}): let it take "
            f"{kind_of(input_shape)} of this shape."
        ) from error
    return _width(features, input_shape, name)


def _width(features: object, input_shape: tuple[int, ...], name: str) -> int:
    sample = "image" if kind_of(input_shape) == "images" else "row"
    if not isinstance(features, Tensor):
        kind = type(features).__name__
        raise UserError(f"the network {name} gives {kind} instead of a tensor: let it return the features alone.")
    given = f"the network {name} maps a batch of {(_SAMPLES, *input_shape)} to {tuple(features.shape)}"
    if features.ndim > 2 and len(features) == _SAMPLES:
        raise UserError(f"{given}: pool them to one vector per {sample}, (B, D).")
    if features.ndim != 2 or len(features) != _SAMPLES:
        raise UserError(f"{given}: let it return one vector per {sample}, (B, D).")
    if features.shape[1] == 0:
        raise UserError(f"{given}, which is no feature at all: let it return at least one.")
    if not features.is_floating_point():
        raise UserError(f"{given} of {features.dtype}: let it return floating-point numbers.")
    return features.shape[1]


@contextmanager
def _evaluating(encoder: nn.Module) -> Iterator[None]:
    """Use evaluation mode and a copy of the generator; afterwards restore the mode of every module."""
    modes = [(part, part.training) for part in encoder.modules()]
    # Lazy layers draw their weights here, so modules that are built next must not draw the same numbers.
    lazy = any(is_lazy(parameter) for parameter in encoder.parameters())
    encoder.eval()
    try:
        with nullcontext() if lazy else torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
