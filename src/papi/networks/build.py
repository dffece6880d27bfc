"""The parts every network has, and the table of encoders."""

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from papi.errors import UserError, unknown
from papi.networks.mlp import MLP
from papi.networks.resnet import ResNet18
from papi.networks.small import SmallResNet
from papi.networks.wide_resnet import WideResNet


class Output(NamedTuple):
    """What one pass over images gives."""

    features: Tensor  # (B, D) of the encoder
    logits: Tensor  # (B, K) of the linear classifier


class Network(nn.Module):
    """Encoder → features; features → linear classifier; features → projector → unit vectors."""

    def __init__(self, encoder: nn.Module, dimensions: int, classes: int, projection: int | None) -> None:
        super().__init__()
        self.projection = projection or dimensions  # width of what `project` gives
        self.autocast: torch.dtype | None = None  # computes in this type where that is safe; None is float32 throughout
        self.encoder = encoder
        self.classifier = nn.Linear(dimensions, classes)
        self.projector = (
            nn.Sequential(nn.Linear(dimensions, dimensions), nn.ReLU(), nn.Linear(dimensions, projection))
            if projection
            else None
        )

    def forward(self, images: Tensor) -> Output:
        with self._precision(images):
            features = self.encoder(images)
            return Output(features, self.classifier(features))

    def encode(self, images: Tensor) -> Tensor:
        """The features `(B, D)` alone."""
        with self._precision(images):
            features: Tensor = self.encoder(images)
            return features

    def project(self, features: Tensor) -> Tensor:
        """Unit vectors `(B, d)`, in float32 at least; without a projector, the features themselves, normalised."""
        with self._precision(features):
            projected = features if self.projector is None else self.projector(features)
        # Half precision rounds the epsilon of the normalisation to zero.
        return normalize(projected.to(torch.promote_types(projected.dtype, torch.float32)))

    def _precision(self, given: Tensor) -> AbstractContextManager[object]:
        return nullcontext() if self.autocast is None else torch.autocast(given.device.type, self.autocast)


class _Entry(NamedTuple):
    encoder: Callable[[int], nn.Module]  # takes the number of channels or features, has an attribute `dimensions`
    projection: int  # width of the projector's output
    takes: str = "images"  # or "features"


NETWORKS = {
    "small": _Entry(SmallResNet, 64),
    "resnet18": _Entry(ResNet18, 128),
    "wide-resnet": _Entry(WideResNet, 128),
    "mlp": _Entry(MLP, 64, takes="features"),
}


def require_fitting(name: str, kind: str) -> None:
    """Stop if a network of the table does not take what a dataset consists of, `images` or `features`."""
    if name in NETWORKS and NETWORKS[name].takes != kind:
        fitting = " or ".join(each for each, entry in NETWORKS.items() if entry.takes == kind)
        raise UserError(f"the network {name} takes {NETWORKS[name].takes}, and these data are {kind}: use {fitting}.")


def build(name: str, channels: int, classes: int, *, project: bool) -> Network:
    """A new network with weights from torch's global generator, in the memory layout convolutions like best."""
    if name not in NETWORKS:
        raise unknown("network", name, NETWORKS)
    entry = NETWORKS[name]
    encoder = entry.encoder(channels)
    dimensions: int = encoder.dimensions  # type: ignore[assignment]
    network = Network(encoder, dimensions, classes, entry.projection if project else None)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def require_compiler(wanted: bool, device: torch.device) -> None:
    """Stop if compiling is wanted for a CPU and there is nothing to compile with."""
    compiler = os.environ.get("CXX", "g++")
    if wanted and device.type == "cpu" and shutil.which(compiler) is None:
        raise UserError(f"--compile needs the C++ compiler {compiler}, which is not here: install it, or leave it out.")


def compile_encoders(module: nn.Module) -> None:
    """Let torch compile the encoder of every network in a method. Names of weights and checkpoints stay as they are."""
    for part in module.modules():
        if isinstance(part, Network):
            part.encoder.compile()
