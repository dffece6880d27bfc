"""A trained network for use: everything it needs is in `model.safetensors` (weights, class names, pixel statistics)."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from papi.data.feature_views import normaliser
from papi.data.readers import as_image_array
from papi.durable import replacing
from papi.engine import evaluate
from papi.errors import UserError
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


class Model:
    """A trained classifier. Images are `uint8`: `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`; features `(N, d)`."""

    def __init__(self, network: Network, card: ModelCard, device: torch.device) -> None:
        self.network = network.to(device).eval()
        self.card = card
        self.device = device
        self._normalise = normaliser(card.shape, card.mean, card.std, device)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.card.class_names

    def predict(self, images: np.ndarray) -> np.ndarray:
        """The name of the likeliest class of each image, `(N,)`."""
        names: np.ndarray = np.array(self.class_names)[self.predict_proba(images).argmax(1)]
        return names

    def predict_proba(self, images: np.ndarray) -> np.ndarray:
        """Probability of each class, `(N, K)`, in the order of `class_names`."""
        return evaluate(self.network, self._tensor(images), self._normalise).calibrated(self.card.temperature).numpy()

    @torch.inference_mode()
    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """`predict_proba` of one batch that is already in the model's own shape and type, without further ado."""
        batch = torch.from_numpy(samples).to(self.device)
        logits = self.network(self._normalise(batch)).logits.float()
        return (logits / self.card.temperature).softmax(1).cpu().numpy()  # type: ignore[no-any-return]

    def embed(self, images: np.ndarray) -> np.ndarray:
        """Unit vectors `(N, d)` in which images of a class lie close together."""
        return evaluate(self.network, self._tensor(images), self._normalise).embedding.numpy()

    def _tensor(self, images: np.ndarray) -> torch.Tensor:
        if len(self.card.shape) == 1:
            array = np.asarray(images, np.float32)
            axes = "features"
        else:
            array = as_image_array(np.asarray(images), "the images")
            axes = "channels, height, width"
        if array.shape[1:] != self.card.shape:
            raise UserError(f"the samples are {array.shape[1:]} ({axes}): this model takes {self.card.shape}.")
        return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(self.device)


def load(run: str | Path, device: str = "cpu") -> Model:
    """The model of a run folder, or of a `model.safetensors` file alone."""
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
    return Model(network, card, torch.device(device))
