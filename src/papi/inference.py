"""A trained network for use: load a run, then predict or embed."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from papi.data.images.arrays import as_image_array
from papi.data.views.choose import normaliser
from papi.errors import UserError
from papi.networks import Factory, Network, Output
from papi.runs.model import ModelCard, read_model
from papi.training.evaluation import evaluate


class Model:
    """A trained classifier. Images are `uint8`: `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`; features `(N, d)`."""

    def __init__(self, network: Network, card: ModelCard, device: torch.device) -> None:
        self.network = network.to(device).eval()
        self.card = card
        self.device = device
        self._normalise = normaliser(card.shape, card.mean, card.std, device)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of `predict_proba`'s columns."""
        return self.card.class_names

    def predict(self, images: np.ndarray) -> np.ndarray:
        """The name of the likeliest class of each image, `(N,)`."""
        names: np.ndarray = np.array(self.class_names)[self.predict_proba(images).argmax(1)]
        return names

    def predict_proba(self, images: np.ndarray) -> np.ndarray:
        """Probability of each class, `(N, K)`, in the order of `class_names`."""
        found = evaluate(self.network, self._tensor(images), self._normalise).calibrated(self.card.temperature)
        return _finite(found.numpy())

    @torch.inference_mode()
    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """`predict_proba` of one batch that already has the model's own shape and type: nothing is checked."""
        batch = torch.from_numpy(samples).to(self.device)
        output: Output = self.network(self._normalise(batch))
        return _finite((output.logits.float() / self.card.temperature).softmax(1).cpu().numpy())

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


def _finite(probabilities: np.ndarray) -> np.ndarray:
    """The same. Numbers that are too large for the network give none."""
    if not np.isfinite(probabilities).all():
        raise UserError(
            "the probabilities of some samples are not finite: the samples, or the weights of the model, hold numbers "
            "that are too large or none at all. Check the samples, or train the model again."
        )
    return probabilities


def load(run: str | Path, device: str = "cpu", network: str | Factory | nn.Module | None = None) -> Model:
    """The model of a run folder, or of a `model.safetensors` file alone.

    A model whose network is not PaPi's own needs its code: name it as `network`, by `package.module:factory` or as the
    factory itself. A file that names code does not get it imported.
    """
    return Model(*read_model(run, network=network), torch.device(device))
