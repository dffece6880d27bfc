"""What a library makes of a name, and the sentences for what it cannot make."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from torch import nn

from papi.errors import UserError
from papi.networks.preparation import Preparation
from papi.networks.registry import explained

Config = dict[str, Any]
"""What besides its name builds an encoder again, as JSON values; empty where the name is enough."""

EXTRAS = {"timm": "timm", "transformers": "transformers", "torchvision": "timm"}  # timm brings torchvision


@dataclass(frozen=True)
class Made:
    """An encoder of a library."""

    encoder: nn.Module
    preparation: Preparation
    config: Config
    notes: tuple[str, ...] = ()


def library(name: str) -> ModuleType:
    """A library that may not be installed, or may not fit what is."""
    install = f"pip install 'papi-pll[{EXTRAS[name]}]'"
    if find_spec(name) is None:
        raise UserError(f"this encoder needs {name}, which is not installed: {install}")
    try:
        return import_module(name)
    except Exception as error:  # a build for another torch fails in many ways
        raise UserError(
            f"this encoder needs {name}, which cannot be imported ({explained(error)}): install it again with the "
            f"torch that you use, {install}"
        ) from error


def hub_of(reference: str) -> ModuleType:
    """The package that talks to the Hugging Face Hub; it comes with timm and transformers."""
    if find_spec("huggingface_hub") is None:
        raise UserError(f"{reference} needs huggingface_hub: pip install 'papi-pll[hub]'")
    return import_module("huggingface_hub")


def require_hub(reference: str, fetch: bool) -> None:
    """Stop if weights that are not on this machine must not be fetched, or cannot be: the hub is asked once.

    The libraries themselves try for most of a minute, once for each file.
    """
    offline = (
        "fetch it once on a machine that is online and copy the folder that HF_HOME names (~/.cache/huggingface), or "
        "give its weights with --weights FILE"
    )
    if not fetch:
        raise UserError(
            f"the weights of {reference} are not on this machine, and nothing is fetched only because a file names "
            f"it: name it as well, with --network {reference} or network={reference!r}, and they are fetched."
        )
    hub = hub_of(reference)
    try:
        import_module("huggingface_hub.utils").get_session().head(hub.constants.ENDPOINT, timeout=10)
    except Exception as error:  # of the network, of proxies, of certificates, or being set to offline
        raise UserError(
            f"the weights of {reference} are not on this machine, and the hub cannot be reached "
            f"({type(error).__name__}): {offline}."
        ) from error


@contextmanager
def fetching(reference: str) -> Iterator[None]:
    """Around what a library fetches: says in a sentence that it could not."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # every library has exceptions of its own
        raise UserError(
            f"the weights of {reference} cannot be fetched ({explained(error)}): check the name and the connection, "
            "or give them with --weights FILE."
        ) from error
