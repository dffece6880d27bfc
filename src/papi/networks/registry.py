"""Networks by name: a table of the package's networks, and any factory that Python can import.

Both are resolved in the same way. A name in the table stands for a path like `papi.networks.small:SmallResNet`; a name
with a colon is such a path itself.
"""

import copy
import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from traceback import extract_tb
from typing import Literal, NamedTuple

import torch
from torch import nn

from papi.errors import UserError, unknown

Factory = Callable[[tuple[int, ...]], nn.Module]
"""Takes the shape of one sample, `(C, H, W)` or `(d,)`, and returns an encoder of float batches to `(B, D)`."""

Kind = Literal["images", "features"]


class NetworkEntry(NamedTuple):
    """A network of the package."""

    path: str  # of its factory
    takes: Kind
    features: int | None  # D; None: the number of columns of a sample
    projection: int  # width of the projector's output
    bf16: bool = False  # measured to be as accurate as in fp32, and faster where bf16 is native: docs/performance.md


NETWORKS = {
    "small": NetworkEntry("papi.networks.small:SmallResNet", "images", 64, 64, bf16=True),
    "resnet18": NetworkEntry("papi.networks.resnet:ResNet18", "images", 512, 128),
    "wide-resnet": NetworkEntry("papi.networks.wide_resnet:WideResNet", "images", 640, 128),
    "mlp": NetworkEntry("papi.networks.mlp:MLP", "features", 256, 64),
    "linear": NetworkEntry("papi.networks.linear:Linear", "features", None, 64),
}
OUTSIDE_PROJECTION: dict[Kind, int] = {"images": 128, "features": 64}  # the projector of any other network


def kind_of(input_shape: tuple[int, ...]) -> Kind:
    """The kind of samples with this shape."""
    return "features" if len(input_shape) == 1 else "images"


def require_fitting(name: str, kind: str) -> None:
    """Raise a UserError if a network of the table does not take the kind of a dataset, `images` or `features`.

    A network from outside the package is not checked here, but by its first forward pass.
    """
    if name in NETWORKS and NETWORKS[name].takes != kind:
        fitting = " or ".join(each for each, entry in NETWORKS.items() if entry.takes == kind)
        raise UserError(f"the network {name} takes {NETWORKS[name].takes}, and these data are {kind}: use {fitting}.")


def reference(network: str | Factory | nn.Module) -> str | None:
    """The name by which any process can find a network again; None if there is none.

    A function or class has one if its module can be imported and contains it under its own name. Lambdas, nested
    functions, built modules, and anything defined in a script or notebook have none.
    """
    if isinstance(network, str):
        return network
    module, name = getattr(network, "__module__", None), getattr(network, "__qualname__", None)
    if isinstance(network, nn.Module) or not isinstance(module, str) or not isinstance(name, str):
        return None
    if module == "__main__" or module not in sys.modules:
        return None
    found: object = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is network else None


def title(network: str | Factory | nn.Module) -> str:
    """The name of a network in messages."""
    named = None if isinstance(network, nn.Module) else getattr(network, "__qualname__", None)
    return reference(network) or str(named or type(network).__qualname__)


def is_name(text: str) -> bool:
    """Whether a text can name a network: it is in the table, or a path."""
    return text in NETWORKS or ":" in text


def find(name: str) -> Factory:
    """The factory for a name of the table or `package.module:factory`."""
    if not is_name(name):
        raise unknown("network", name, NETWORKS, "package.module:factory")
    module, _, attribute = (NETWORKS[name].path if name in NETWORKS else name).partition(":")
    try:
        found: object = reduce(getattr, attribute.split("."), import_module(module))
    except Exception as error:  # importing a module can raise anything
        raise UserError(
            f"the network {name} cannot be imported ({explained(error)}): name it like package.module:factory, and put "
            "the folder of its package on PYTHONPATH."
        ) from error
    if not callable(found):
        raise UserError(
            f"the network {name} is of type {type(found).__name__} and cannot be called: name a function or a class "
            "that takes the shape of a sample and returns a torch.nn.Module."
        )
    return found


def make_encoder(network: str | Factory | nn.Module, input_shape: tuple[int, ...]) -> nn.Module:
    """A new encoder for samples of this shape; a copy, if the network is a built module."""
    factory = find(network) if isinstance(network, str) else network
    built = isinstance(factory, nn.Module)
    try:
        made: object = copy.deepcopy(factory) if built else factory(input_shape)
    except UserError:
        raise
    except Exception as error:  # so can a factory
        what = "copied" if built else f"built for samples of shape {input_shape}"
        why = "every training starts from a copy of it" if built else "its factory gets this shape as its only argument"
        raise UserError(f"the network {title(network)} cannot be {what} ({explained(error)}): {why}.") from error
    if not isinstance(made, nn.Module):
        raise UserError(
            f"the network {title(network)} is made by a factory that returns {type(made).__name__}: let it return the "
            "encoder, a torch.nn.Module."
        )
    return made


def explained(error: Exception) -> str:
    """The error of outside code and its place, on one line, because no traceback is shown."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    said = shorten(str(error).strip().partition("\n")[0], 300)
    text = said if isinstance(error, ImportError | AttributeError) and said else f"{type(error).__name__}: {said}"
    installed = str(Path(torch.__file__).parents[1])
    inside = (installed, str(Path(__file__).parents[1]), import_module.__code__.co_filename, "<")
    places = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(inside)]
    return f"{text}, in line {places[-1].lineno} of {Path(places[-1].filename).name}" if places else text
