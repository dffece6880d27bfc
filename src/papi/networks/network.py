"""Builds networks: an encoder with a linear classifier and an optional projector."""

import copy
import os
import shutil
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.parameter import is_lazy

from papi.errors import UserError
from papi.networks.registry import NETWORKS, OUTSIDE_PROJECTION, Factory, kind_of, make_encoder, require_fitting, title
from papi.networks.trial import feature_width

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class Output(NamedTuple):
    """The output of a forward pass."""

    features: Tensor  # (B, D) of the encoder
    logits: Tensor  # (B, K) of the linear classifier


class Network(nn.Module):
    """Encoder → features; features → linear classifier; features → projector → unit vectors. `build` makes one.

    Calling it with a float batch returns an `Output`: `features` `(B, D)` and `logits` `(B, K)`.
    """

    def __init__(self, encoder: nn.Module, dimensions: int, classes: int, projection: int | None) -> None:
        super().__init__()
        self.projection = projection or dimensions  # width of the output of `project`
        self.fixed_statistics = False  # keep the encoder's batch-norm statistics in training
        # Type of the encoder's operations where it is safe; None: float32 throughout. The classifier and the projector
        # are always computed in float32: their products are so small that converting them takes longer.
        self.autocast: torch.dtype | None = None
        self.encoder = encoder
        self.classifier = nn.Linear(dimensions, classes)
        self.projector = (
            nn.Sequential(nn.Linear(dimensions, dimensions), nn.ReLU(), nn.Linear(dimensions, projection))
            if projection
            else None
        )

    def train(self, mode: bool = True) -> "Network":
        """As for every module, but an encoder with fixed statistics keeps using them."""
        super().train(mode)
        if self.fixed_statistics:
            for part in self.encoder.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm):
                    part.eval()
        return self

    def forward(self, images: Tensor) -> Output:
        """Features and logits of a float batch."""
        features = self._features(images)
        return Output(features, self.classifier(features))

    def encode(self, images: Tensor) -> Tensor:
        """The features `(B, D)` alone, in float32 or wider."""
        return self._features(images)

    def _features(self, images: Tensor) -> Tensor:
        if self.autocast is None:
            features: Tensor = self.encoder(images)
            return features
        with torch.autocast(images.device.type, self.autocast):
            features = self.encoder(images)
        return features.float()

    def project(self, features: Tensor) -> Tensor:
        """Unit vectors `(B, d)` in float32 or wider; without a projector, the normalised features."""
        return normalize(features if self.projector is None else self.projector(features))


@runtime_checkable
class Foldable(Protocol):
    """A part of a network that computes the same with fewer operations, once it is no longer trained."""

    def fold(self) -> None: ...


def folded(network: Network) -> Network:
    """The network for evaluation: a copy whose foldable parts are folded, or the network itself if it has none.

    Outputs are equal up to rounding.
    """
    if not any(isinstance(part, Foldable) for part in network.modules()):
        return network
    folding = copy.deepcopy(network).eval()
    for part in folding.modules():
        if isinstance(part, Foldable):
            part.fold()
    return folding


def build(network: str | Factory | nn.Module, input_shape: tuple[int, ...], classes: int, *, project: bool) -> Network:
    """Build a network: an encoder, a linear classifier and, if requested, a projector.

    Weights are initialised with torch's global generator.

    Parameters
    ----------
    network
        A name of `NETWORKS`, `package.module:factory`, a factory, or an encoder to copy.
    input_shape
        The shape of one sample, `(C, H, W)` or `(d,)`.
    classes
        The number of classes, K.
    project
        Whether to add a projector, for methods with prototypes or a contrastive loss.

    Returns
    -------
    Network
        In the memory layout that is fastest for convolutions.

    Examples
    --------
    >>> import torch
    >>> from papi.networks import build
    >>> network = build("small", (3, 32, 32), classes=10, project=True)
    >>> output = network(torch.randn(2, 3, 32, 32))
    >>> output.logits.shape
    torch.Size([2, 10])
    >>> torch.allclose(network.project(output.features).norm(dim=1), torch.ones(2))
    True
    """
    entry = NETWORKS.get(network) if isinstance(network, str) else None
    if entry is not None:
        require_fitting(str(network), kind_of(input_shape))
    encoder = arranged(make_encoder(network, input_shape), torch.channels_last)
    known = entry.features if entry else None
    features = known or feature_width(encoder, input_shape, title(network))
    projection = entry.projection if entry else OUTSIDE_PROJECTION[kind_of(input_shape)]
    built = Network(encoder, features, classes, projection if project else None)
    return arranged(built, torch.channels_last)  # again: lazy layers got their weights in the trial pass


def arranged(module: ModuleT, layout: torch.memory_format) -> ModuleT:
    """Convert the four-dimensional weights of a module, those of convolutions, to this memory layout."""
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_lazy(tensor) and tensor.ndim == 4:  # `Module.to` fails for five-dimensional weights
            tensor.data = tensor.data.to(memory_format=layout)
    return module


def require_compiler(wanted: bool, device: torch.device) -> None:
    """Raise a UserError if compilation for a CPU is requested without a compiler."""
    compiler = os.environ.get("CXX", "g++")
    if wanted and device.type == "cpu" and shutil.which(compiler) is None:
        raise UserError(f"--compile needs the C++ compiler {compiler}: install it, or leave out --compile.")


def compile_encoders(module: nn.Module) -> None:
    """Compile the encoder of every network in a method with torch. Weight names and checkpoints do not change."""
    for part in module.modules():
        if isinstance(part, Network):
            part.encoder.compile()
