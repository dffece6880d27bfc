"""The encoder that a library builds, and the error messages if it cannot."""

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
"""Settings besides the name that rebuild an encoder, as JSON values; empty if the name is enough."""

EXTRAS = {"timm": "timm", "transformers": "transformers", "torchvision": "timm"}  # timm installs torchvision


@dataclass(frozen=True)
class Made:
    """An encoder of a library."""

    encoder: nn.Module
    preparation: Preparation
    config: Config
    notes: tuple[str, ...] = ()


def library(name: str) -> ModuleType:
    """Import a library that may be missing or incompatible with the installed packages."""
    install = f"pip install 'papi-pll[{EXTRAS[name]}]'"
    if find_spec(name) is None:
        raise UserError(f"this encoder needs {name}, which is not installed: {install}")
    try:
        return import_module(name)
    except Exception as error:  # a build for another torch fails in many ways
        raise UserError(
            f"this encoder needs {name}, which cannot be imported ({explained(error)}): reinstall it for your version "
            f"of torch, {install}"
        ) from error


def hub_of(reference: str) -> ModuleType:
    """The client of the Hugging Face Hub, which timm and transformers install."""
    if find_spec("huggingface_hub") is None:
        raise UserError(f"{reference} needs huggingface_hub: pip install 'papi-pll[hub]'")
    return import_module("huggingface_hub")


def require_hub(reference: str, fetch: bool) -> None:
    """Raise a UserError if missing weights must not or cannot be downloaded. The hub is contacted once.

    The libraries themselves retry for almost a minute per file.
    """
    offline = (
        "fetch it once on a machine that is online and copy the folder that HF_HOME names (~/.cache/huggingface), or "
        "give its weights with --weights FILE"
    )
    if not fetch:
        raise UserError(
            f"the weights of {reference} are not on this machine, and are not downloaded if only a file names the "
            f"encoder: to download them, add --network {reference} or network={reference!r}."
        )
    hub = hub_of(reference)
    try:
        import_module("huggingface_hub.utils").get_session().head(hub.constants.ENDPOINT, timeout=10)
    except Exception as error:  # network, proxy or certificate errors, or offline mode
        raise UserError(
            f"the weights of {reference} are not on this machine, and the hub cannot be reached "
            f"({type(error).__name__}): {offline}."
        ) from error


@contextmanager
def fetching(reference: str) -> Iterator[None]:
    """Convert errors of a library's download to a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # every library has its own exceptions
        raise UserError(
            f"the weights of {reference} cannot be fetched ({explained(error)}): check the name and the connection, "
            "or give them with --weights FILE."
        ) from error
