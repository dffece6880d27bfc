"""The file model.safetensors: all that inference needs, weights, class names and pixel statistics."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.outside import needs_import
from papi.files.reading import is_unicode, memory_bytes, parse_json, plain_file, reason
from papi.networks import NETWORKS, Factory, Network, build, is_name, reference, title

LARGEST_SAMPLE = 2**25  # values of one sample: an image of 3 x 3,344 x 3,344
_LARGE = 1e30  # what float32 can divide by


@dataclass(frozen=True)
class ModelCard:
    """What one must know to rebuild a network and feed it."""

    network: str | None  # a name or `package.module:factory`; None if nothing can build the network again
    class_names: tuple[str, ...]
    shape: tuple[int, ...]  # C, H, W of an image, or the number of features
    mean: tuple[float, ...]
    std: tuple[float, ...]
    projects: bool
    temperature: float = 1.0  # what logits are divided by before they become probabilities


def save_model(file: Path, network: Network, card: ModelCard) -> None:
    """Write weights and card as one file, beside and renamed."""
    with replacing(file) as stream:
        stream.write(model_bytes(network, card))


def model_bytes(network: Network, card: ModelCard) -> bytes:
    """Weights and card as the content of a file. Equal weights give equal bytes."""
    if card.network is None or not is_name(card.network):
        raise UserError(
            "this network cannot be saved, because no name leads back to it: put the function that builds it into a "
            "module that Python can import, and give that function, or package.module:function, as the network."
        )
    return to_bytes(_separate(network), metadata={"papi": json.dumps(asdict(card))})


def _separate(network: Network) -> dict[str, Tensor]:
    """The weights, each in memory of its own: the format does not take tensors that share it, as tied weights do."""
    tensors: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, value in network.state_dict().items():
        tensor = value.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    return tensors


def read_model(run: str | Path, *, network: str | Factory | nn.Module | None = None) -> tuple[Network, ModelCard]:
    """The trained network of a run folder, or of a `model.safetensors` file alone, and its card.

    A file may name a network from outside the package. That code runs only if the caller names it, too, or has already
    imported it; `network` may also be where the code is now, if it has moved.
    """
    file, weights, card = _read(run)
    assert card.network is not None
    if network is None and needs_import(card.network):
        raise UserError(
            f"{file} needs the network {card.network}, and no code is run only because a file names it: if you trust "
            f'it, name it as well, with papi.load(…, network="{card.network}") or --network {card.network}.'
        )
    source = card.network if network is None else network
    with _fitting(file, source, card):
        if isinstance(source, str) and source in NETWORKS:
            with torch.device("meta"):  # a card may promise any size: memory is taken once the weights have it, too
                _build(source, card).load_state_dict(weights, assign=True)
    built = _build(source, card)
    with _fitting(file, source, card):
        built.load_state_dict(weights)
    return built, replace(card, network=reference(source) or card.network)


def _build(source: str | Factory | nn.Module, card: ModelCard) -> Network:
    return build(source, card.shape, len(card.class_names), project=card.projects)


@contextmanager
def _fitting(file: Path, source: str | Factory | nn.Module, card: ModelCard) -> Iterator[None]:
    """Around what puts weights into a network: says which of them do not fit."""
    try:
        yield
    except RuntimeError as error:
        first = shorten(" ".join(str(error).splitlines()[1:2]), 200)
        raise UserError(
            f"{file} has weights that do not fit the network {title(source)} ({first}): name the network it was "
            f"trained with, {card.network}, or train it again."
        ) from error


def read_weights(run: str | Path) -> tuple[dict[str, Tensor], ModelCard]:
    """The weights and the card alone. Nothing is built, so no code of a network is needed."""
    _, weights, card = _read(run)
    return weights, card


def check_model(run: str | Path) -> None:
    """Stop if the file is damaged. Weights of code that would have to be imported are read, and that is all."""
    _, card = read_weights(run)
    assert card.network is not None
    if not needs_import(card.network):
        read_model(run)


def _read(run: str | Path) -> tuple[Path, dict[str, Tensor], ModelCard]:
    path = Path(run)
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.exists():
        raise UserError(f"{file} does not exist: give the folder of a finished run, or its model.safetensors.")
    try:
        real = plain_file(file, memory_bytes(), inside=path if path.is_dir() else None)
        with safe_open(real, "pt", device="cpu") as opened:  # type: ignore[no-untyped-call]
            card = _card((opened.metadata() or {}).get("papi", "{}"))
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(
            f"{file} is not a model of PaPi ({reason(error)}). Train it again, or fetch the file again."
        ) from error
    broken = [name for name, tensor in weights.items() if tensor.is_floating_point() and not _is_finite(tensor)]
    if broken:
        raise UserError(
            f"{file} is damaged: {broken[0]} holds numbers that are not finite. Train it again, or fetch it again."
        )
    return file, weights, card


def _is_finite(tensor: Tensor) -> bool:
    """Whether the numbers are finite in the format that networks compute in, whatever the file has."""
    return bool(tensor.float().isfinite().all())


def _card(text: str) -> ModelCard:
    """The card in a file. Every value is of the kind it must be: they are handed to code."""
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
            ):
                return ModelCard(network, tuple(names), tuple(shape), tuple(mean), tuple(std), projects, temperature)
    raise ValueError("its description is damaged")
