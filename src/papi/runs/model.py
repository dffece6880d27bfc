"""The file model.safetensors: all that inference needs, weights, class names and pixel statistics."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from papi.errors import UserError
from papi.files.durable import replacing
from papi.networks import Network, build


@dataclass(frozen=True)
class ModelCard:
    """What one must know to rebuild a network and feed it."""

    network: str
    class_names: tuple[str, ...]
    shape: tuple[int, ...]  # C, H, W of an image, or the number of features
    mean: tuple[float, ...]
    std: tuple[float, ...]
    projects: bool
    temperature: float = 1.0  # what logits are divided by before they become probabilities


def save_model(file: Path, network: Network, card: ModelCard) -> None:
    """Write weights and card as one file, beside and renamed. Equal weights give equal bytes."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    with replacing(file) as stream:
        stream.write(to_bytes(tensors, metadata={"papi": json.dumps(asdict(card))}))


def read_model(run: str | Path) -> tuple[Network, ModelCard]:
    """The trained network of a run folder, or of a `model.safetensors` file alone, and its card."""
    path = Path(run)
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.exists():
        raise UserError(f"{file} does not exist: give the folder of a finished run, or its model.safetensors.")
    try:
        with safe_open(file, "pt", device="cpu") as opened:  # type: ignore[no-untyped-call]
            values = json.loads((opened.metadata() or {})["papi"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"{file} is not a model of PaPi ({error}). Train it again, or fetch the file again.") from error
    try:
        card = ModelCard(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})  # type: ignore[arg-type]
        network = build(card.network, card.shape[0], len(card.class_names), project=card.projects)
        network.load_state_dict(tensors)
    except (TypeError, AttributeError, LookupError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{file} has weights that do not fit its description ({first}). Train it again.") from error
    return network, card
