"""Reads and writes model.safetensors, with all that inference needs: weights, class names and pixel statistics."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from papi.config import Values
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.outside import LIBRARIES, needs_import
from papi.files.reading import is_unicode, memory_bytes, parse_json, plain_file, reason
from papi.networks import NETWORKS, Factory, Network, build, is_name, reference, title
from papi.networks.card import EncoderCard
from papi.networks.preparation import Preparation
from papi.networks.pretrained import load_pretrained, rebuild
from papi.networks.registry import make_encoder
from papi.networks.trial import feature_width

ENCODER = "pretrained."  # prefix of the weights of a frozen encoder
LARGEST_SAMPLE = 2**25  # maximum values per sample: an image of 3 x 3,344 x 3,344
_LARGE = 1e30  # largest divisor for float32


@dataclass(frozen=True)
class ModelCard:
    """The description that is needed to rebuild a network and prepare its inputs."""

    network: str | None  # a name or `package.module:factory`; None if the network cannot be rebuilt
    class_names: tuple[str, ...]
    shape: tuple[int, ...]  # C, H, W of an image, or the number of features (of the encoder, if there is one)
    mean: tuple[float, ...]
    std: tuple[float, ...]
    projects: bool
    temperature: float = 1.0  # divisor of the logits before the softmax
    encoder: EncoderCard | None = None  # the frozen encoder before the network
    photos: Preparation | None = None  # preparation for a network that takes photos directly

    @property
    def preparation(self) -> Preparation | None:
        """How photos are prepared; None for features and for images that are already square."""
        return self.photos if self.encoder is None else self.encoder.preparation

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a user's sample: C, H, W of a prepared photo or an image, or the number of features."""
        return self.shape if self.encoder is None else self.encoder.preparation.shape

    def to_json(self) -> Values:
        """All values by name; encoder and preparation only if there is one."""
        values = asdict(self)
        for name, known in (("encoder", self.encoder), ("photos", self.photos)):
            if known is None:
                del values[name]
            else:
                values[name] = known.to_json()
        return values


class StoredModel(NamedTuple):
    """The contents of a file, ready for use."""

    network: Network
    card: ModelCard
    encoder: nn.Module | None = None  # frozen, applied before the network


def save_model(file: Path, network: Network, card: ModelCard, encoder: nn.Module | None = None) -> None:
    """Write weights and card atomically as one file."""
    with replacing(file) as stream:
        stream.write(model_bytes(network, card, encoder))


def model_bytes(network: Network, card: ModelCard, encoder: nn.Module | None = None) -> bytes:
    """Weights and card as the content of a file. Equal weights give equal bytes.

    They include the weights of an encoder, unless the card says that a library provides them.
    """
    if card.network is None or not is_name(card.network):
        raise UserError(
            "this network cannot be saved, because it has no importable name: put the function that builds it into a "
            "module, and pass that function or package.module:function as the network."
        )
    weights = dict(network.state_dict())
    if encoder is not None and card.encoder is not None and card.encoder.stored:
        weights |= {f"{ENCODER}{name}": tensor for name, tensor in encoder.state_dict().items()}
    return to_bytes(_separate(weights), metadata={"papi": json.dumps(card.to_json())})


def _separate(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copy weights that share memory, such as tied weights, because the format does not allow them."""
    tensors: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, value in weights.items():
        tensor = value.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    return tensors


def read_model(run: str | Path, *, network: str | Factory | nn.Module | None = None) -> StoredModel:
    """The trained network of a run folder, or of a single `model.safetensors` file, and its card.

    A file may name a network from outside the package. That code runs only if the caller also names it or has already
    imported it. If the code has moved, `network` is its new location. In a model with a pretrained encoder, this
    applies to the encoder.
    """
    file, weights, card = _read(run)
    if card.encoder is None:
        return StoredModel(*_read_network(file, weights, card, network))
    own = {name: tensor for name, tensor in weights.items() if not name.startswith(ENCODER)}
    if len(card.shape) == 3:  # the encoder was fine-tuned, so it is part of the network
        encoder, found = _architecture(file, card.encoder, network)
        return StoredModel(*_read_network(file, own, replace(card, encoder=found), encoder))
    encoder, found = _read_encoder(file, weights, card.encoder, network)
    head, card = _read_network(file, own, card, None)
    return StoredModel(head, replace(card, encoder=found), encoder)


def _require_named(file: Path, name: str) -> None:
    """Raise a UserError for a name that would import code."""
    if needs_import(name):
        raise UserError(
            f"{file} needs the network {name}, which is code from outside PaPi: if you trust it, use "
            f'papi.load(…, network="{name}") or --network {name}.'
        )


def _read_encoder(
    file: Path, weights: dict[str, Tensor], card: EncoderCard, network: str | Factory | nn.Module | None
) -> tuple[nn.Module, EncoderCard]:
    """The frozen encoder of a model, with the weights in its file or those that a library provides."""
    if not card.stored:
        return _provided(file, card, named=network is not None), card
    encoder, card = _architecture(file, card, network)
    own = {key.removeprefix(ENCODER): tensor for key, tensor in weights.items() if key.startswith(ENCODER)}
    try:
        encoder.load_state_dict(own)
    except RuntimeError as error:
        first = shorten(" ".join(str(error).splitlines()[1:2]), 200)
        raise UserError(
            f"{file} has weights that do not match the encoder {card.reference} ({first}): specify the encoder that it "
            "was trained with."
        ) from error
    return encoder, card


def _architecture(
    file: Path, card: EncoderCard, network: str | Factory | nn.Module | None
) -> tuple[nn.Module, EncoderCard]:
    """The encoder of a model with random weights, and its card with the current location of its code."""
    if network is None:
        _require_named(file, card.reference)
    source = card.reference if network is None else network
    if isinstance(source, str) and source.startswith(LIBRARIES):
        encoder = rebuild(source, card.preparation, card.config)
    else:
        encoder = make_encoder(source, card.preparation.shape).float().eval().requires_grad_(False)
    feature_width(encoder, card.preparation.shape, title(source))  # lazy layers get their size
    return encoder, replace(card, reference=reference(source) or card.reference)


def _provided(file: Path, card: EncoderCard, named: bool) -> nn.Module:
    """An encoder with the weights that a library provides, which must be those used in training.

    Weights that are not on this machine are downloaded only if the user names the encoder.
    """
    if not card.reference.startswith(LIBRARIES):
        raise UserError(f"{file} is damaged: the weights of its encoder {card.reference} are missing.")
    found = load_pretrained(card.reference, size=card.preparation.size, fetch=named)
    if found.checksum != card.checksum:
        raise UserError(
            f"{file} was trained with other weights of {card.reference} than those on this machine: restore them, or "
            "train it again with --embed-weights, which stores them in the model."
        )
    return found.encoder


def _read_network(
    file: Path, weights: dict[str, Tensor], card: ModelCard, network: str | Factory | nn.Module | None
) -> tuple[Network, ModelCard]:
    assert card.network is not None
    if network is None:
        _require_named(file, card.network)
    source = card.network if network is None else network
    with _fitting(file, source, card):
        if isinstance(source, str) and source in NETWORKS:
            with torch.device("meta"):  # a card may claim any size: allocate memory only once the weights match
                _build(source, card).load_state_dict(weights, assign=True)
    built = _build(source, card)
    with _fitting(file, source, card):
        built.load_state_dict(weights)
    return built, replace(card, network=reference(source) or card.network)


def _build(source: str | Factory | nn.Module, card: ModelCard) -> Network:
    return build(source, card.shape, len(card.class_names), project=card.projects)


@contextmanager
def _fitting(file: Path, source: str | Factory | nn.Module, card: ModelCard) -> Iterator[None]:
    """Convert errors while loading weights to a UserError that names a weight that does not match."""
    try:
        yield
    except RuntimeError as error:
        first = shorten(" ".join(str(error).splitlines()[1:2]), 200)
        raise UserError(
            f"{file} has weights that do not match the network {title(source)} ({first}): use the network that it was "
            f"trained with, {card.network}, or train it again."
        ) from error


def read_weights(run: str | Path) -> tuple[dict[str, Tensor], ModelCard]:
    """Only the weights, without those of a frozen encoder, and the card. Nothing is built, so no code is needed."""
    _, weights, card = _read(run)
    return {name: tensor for name, tensor in weights.items() if not name.startswith(ENCODER)}, card


def check_model(run: str | Path) -> None:
    """Raise a UserError if the file is damaged. If the network would have to be imported, only weights are read."""
    file, weights, card = _read(run)
    assert card.network is not None
    if card.encoder is not None:
        own = {name: tensor for name, tensor in weights.items() if not name.startswith(ENCODER)}
        _read_network(file, own, card, None)
    elif not needs_import(card.network):
        read_model(run)


def _read(run: str | Path) -> tuple[Path, dict[str, Tensor], ModelCard]:
    path = Path(run)
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.exists():
        if (path / "config.json").exists() and not (path / "summary.json").exists():
            raise UserError(
                f"the run in {path} has not finished: continue it with the same `papi train` command, or add "
                "--finish-now to that command to end it at its last checkpoint."
            )
        raise UserError(f"{file} does not exist: specify the folder of a finished run, or its model.safetensors.")
    try:
        real = plain_file(file, memory_bytes(), inside=path if path.is_dir() else None)
        with safe_open(real, "pt", device="cpu") as opened:  # type: ignore[no-untyped-call]
            card = _card((opened.metadata() or {}).get("papi", "{}"))
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(
            f"{file} is not a model of PaPi ({reason(error)}): train it again, or copy the file again."
        ) from error
    broken = [name for name, tensor in weights.items() if tensor.is_floating_point() and not _is_finite(tensor)]
    if broken:
        raise UserError(
            f"{file} is damaged, because {broken[0]} has values that are not finite: train it again, or copy it again."
        )
    return file, weights, card


def _is_finite(tensor: Tensor) -> bool:
    """Whether the numbers are finite in the floating-point type that networks use, whatever the file's type."""
    return bool(tensor.float().isfinite().all())


def _card(text: str) -> ModelCard:
    """The card in a file. The type of every value is checked, because they are passed to code."""
    match parse_json(text):
        case {
            "network": str(network),
            "class_names": [_, *_] as names,
            "shape": [_] | [_, _, _] as shape,
            "mean": [*mean],
            "std": [*std],
            "projects": bool(projects),
            **others,
        }:
            temperature: object = others.pop("temperature", 1.0)
            described: object = others.pop("encoder", None)
            encoder = None if described is None else EncoderCard.from_json(described)
            prepared: object = others.pop("photos", None)
            photos = None if prepared is None else Preparation.from_json(prepared)
            if (
                isinstance(temperature, float | int)
                and not others
                and all(isinstance(name, str) and is_unicode(name) for name in names)
                and all(type(side) is int and side > 0 for side in shape)
                and math.prod(shape) <= LARGEST_SAMPLE
                and all(type(number) in (float, int) for number in (*mean, *std, temperature))
                and all(abs(number) < _LARGE for number in mean)
                and all(1 / _LARGE < number < _LARGE for number in (*std, temperature))
                and len(mean) == len(std) == shape[0]
                and (photos is None or photos.shape == tuple(shape))
            ):
                values = (tuple(names), tuple(shape), tuple(mean), tuple(std), projects, temperature)
                return ModelCard(network, *values, encoder, photos)
    raise ValueError("its description is damaged")
