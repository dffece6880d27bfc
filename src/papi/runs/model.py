"""The file model.safetensors: all that inference needs, weights, class names and pixel statistics."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from papi.errors import UserError
from papi.files.durable import replacing
from papi.networks import Factory, Network, build, is_name, needs_import, reference, title


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
    """Write weights and card as one file, beside and renamed. Equal weights give equal bytes."""
    if card.network is None or not is_name(card.network):
        raise UserError(
            "this network cannot be saved, because no name leads back to it: put the function that builds it into a "
            "module that Python can import, and give that function, or package.module:function, as the network."
        )
    with replacing(file) as stream:
        stream.write(to_bytes(_separate(network), metadata={"papi": json.dumps(asdict(card))}))


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
    built = build(source, card.shape, len(card.class_names), project=card.projects)
    try:
        built.load_state_dict(weights)
    except RuntimeError as error:
        first = shorten(" ".join(str(error).splitlines()[1:2]), 200)
        raise UserError(
            f"{file} has weights that do not fit the network {title(source)} ({first}): name the network it was "
            f"trained with, {card.network}, or train it again."
        ) from error
    return built, replace(card, network=reference(source) or card.network)


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
        with safe_open(file, "pt", device="cpu") as opened:  # type: ignore[no-untyped-call]
            card = _card((opened.metadata() or {})["papi"])
            return file, {name: opened.get_tensor(name) for name in opened.keys()}, card  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"{file} is not a model of PaPi ({error}). Train it again, or fetch the file again.") from error


def _card(text: str) -> ModelCard:
    """The card in a file. Every value is of the kind it must be: they are handed to code."""
    match json.loads(text):
        case {
            "network": str(network),
            "class_names": [_, *_] as names,
            "shape": [_] | [_, _, _] as shape,
            "mean": [*mean],
            "std": [*std],
            "projects": bool(projects),
            **others,
        }:
            temperature = others.pop("temperature", 1.0)
            if (
                not others
                and all(isinstance(name, str) for name in names)
                and all(type(side) is int and side > 0 for side in shape)
                and all(isinstance(number, float | int) for number in (*mean, *std))
                and len(mean) == len(std) == shape[0]
                and isinstance(temperature, float | int)
                and temperature > 0
            ):
                return ModelCard(network, tuple(names), tuple(shape), tuple(mean), tuple(std), projects, temperature)
    raise ValueError("its description is damaged")
