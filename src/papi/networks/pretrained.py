"""Pretrained encoders from timm, transformers, torchvision or a user's own factory."""

from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from papi.errors import UserError
from papi.files.outside import LIBRARIES
from papi.networks.preparation import Preparation
from papi.networks.registry import NETWORKS, find, make_encoder
from papi.networks.sources import of_timm, of_torchvision, of_transformers
from papi.networks.sources.made import Config, Made
from papi.networks.trial import feature_width
from papi.networks.weights import checksum, is_finite, put_weights, read_weights_file

SOURCES = {"timm": of_timm, "hf": of_transformers, "torchvision": of_torchvision}
_CARRIED = ("input_size", "mean", "std", "interpolation")  # attributes of a factory's module that describe its photos


@dataclass(frozen=True)
class Pretrained:
    """A pretrained encoder, with what is needed to prepare its inputs and to load it again."""

    encoder: nn.Module  # (B, 3, size, size) float, normalised → (B, width); in evaluation mode, frozen
    width: int
    preparation: Preparation
    reference: str  # timm:resnet18, hf:NAME, torchvision:NAME or package.module:factory
    checksum: str  # SHA-256 over the names and bytes of its weights
    notes: tuple[str, ...] = ()  # messages for the user, for instance which weights were left out
    provided: bool = False  # a library provides these weights, so its reference and checksum are enough to find them
    config: Config = field(default_factory=dict)  # settings besides the name, to rebuild it


class Root(nn.Module):
    """The signed square root of features `(B, D)`, applied between a frozen encoder and its head.

    Pooled features are mostly small, with a few large values. Their roots are spread more evenly, so that a class is
    closer to a Gaussian and a linear head needs fewer labels.
    """

    def forward(self, features: Tensor) -> Tensor:
        """The same shape."""
        return features.sign() * features.abs().sqrt()


def is_pretrained(name: str) -> bool:
    """Whether a network is a pretrained encoder, from a library or from a module that defines how to prepare photos.

    This imports the module of a factory, so call it only with names that the user has given.
    """
    if name.startswith(LIBRARIES):
        return True
    return ":" in name and name not in NETWORKS and any(hasattr(_module_of(name), each) for each in _CARRIED)


def load_pretrained(
    name: str, weights: str | None = "default", size: int | None = None, *, fetch: bool = True
) -> Pretrained:
    """The encoder of that name, frozen and in evaluation mode.

    `weights` are its `default` ones, those of a file, or random (None or `none`), from torch's global generator. `size`
    is the side of its photos, if it accepts a size other than its own. Without `fetch`, nothing is downloaded.
    """
    file = None if weights in (None, "none", "default") else Path(str(weights))
    if file is not None and not file.is_file():
        raise UserError(f"--weights {file} does not exist: use a file, default or none.")
    library, _, own = name.partition(":")
    if name.startswith(LIBRARIES):
        made = SOURCES[library].make(own, file, size, default=weights == "default", fetch=fetch)
    else:
        made = _from_factory(name, file, size)
    on_hub = name.startswith(LIBRARIES) and not (library == "hf" and Path(own).is_dir())
    return _frozen(made, name, provided=weights == "default" and on_hub)


def adopt(encoder: nn.Module, name: str) -> Pretrained:
    """A copy of a module in memory, frozen. Like a factory's module, it may say how photos are prepared."""
    return _frozen(Made(deepcopy(encoder), _carried(encoder, name), {}), name)


def _frozen(made: Made, name: str, *, provided: bool = False) -> Pretrained:
    """The encoder in evaluation mode and float32, if it works and its weights are finite."""
    encoder = made.encoder.float().eval().requires_grad_(False)
    width = feature_width(encoder, made.preparation.shape, name)
    broken = [key for key, tensor in encoder.state_dict().items() if not is_finite(tensor)]
    if broken:
        raise UserError(
            f"the weights of {name} are damaged ({broken[0]} has values that are not finite): download them again."
        )
    return Pretrained(
        encoder=encoder,
        width=width,
        preparation=made.preparation,
        reference=name,
        checksum=checksum(encoder),
        notes=made.notes,
        provided=provided,
        config=made.config,
    )


def rebuild(name: str, preparation: Preparation, config: Config) -> nn.Module:
    """The architecture of an encoder with random weights, to be replaced by those of a model file."""
    library, _, own = name.partition(":")
    encoder: nn.Module
    if name.startswith(LIBRARIES):
        encoder = SOURCES[library].rebuild(own, config, preparation.size)
    else:
        encoder = make_encoder(name, preparation.shape)
    return encoder.float().eval().requires_grad_(False)


def _from_factory(name: str, file: Path | None, size: int | None) -> Made:
    """The encoder that a factory returns, with the factory's own weights or those of a file."""
    preparation = _carried(_module_of(name), name, size)
    encoder = make_encoder(name, preparation.shape)
    notes: tuple[str, ...] = ()
    if file is not None:
        feature_width(encoder, preparation.shape, name)  # lazy layers get their size
        notes = put_weights(encoder, read_weights_file(file), str(file), name)
    return Made(encoder, preparation, {}, notes)


def _carried(holder: object, name: str, size: int | None = None) -> Preparation:
    """The preparation of photos that `holder` defines, with ImageNet's values for what it does not define."""
    default = Preparation()
    found: dict[str, Any] = {each: getattr(holder, each, None) for each in _CARRIED}
    side = found["input_size"]
    if isinstance(side, tuple | list) and side:
        side = side[-1]
    try:
        return Preparation(
            size=size or side or default.size,
            mean=default.mean if found["mean"] is None else tuple(found["mean"]),
            std=default.std if found["std"] is None else tuple(found["std"]),
            interpolation=found["interpolation"] or default.interpolation,
        )
    except (ValueError, TypeError) as error:
        raise UserError(f"{name} says how photos are prepared, but {error}.") from error


def _module_of(name: str) -> ModuleType:
    find(name)  # raises a UserError if it cannot be imported
    return import_module(name.partition(":")[0])
