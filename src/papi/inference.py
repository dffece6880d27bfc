"""Inference: load a trained model, then predict or embed."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from papi.data.images.arrays import as_image_array
from papi.data.images.decode import ImageError, Target, decode, decode_square
from papi.data.images.lanes import in_lanes
from papi.data.images.photos import Photos, Source
from papi.data.loader import rows_at_once
from papi.data.own.given import sources_of
from papi.data.views.choose import normaliser
from papi.data.views.images import NormaliseImages
from papi.errors import UserError
from papi.networks import Factory, Network, Output
from papi.networks.preparation import Preparation
from papi.networks.pretrained import Root
from papi.runs.model import ModelCard, StoredModel, read_model
from papi.training.evaluation import Evaluation, evaluate

MOST_ROWS = 256  # largest batch; large images use smaller batches


class Model:
    """A trained classifier, for images or for rows of features. `papi.load` returns one.

    All methods take the same kinds of input:

    - images: paths, folders, Pillow images, `uint8` arrays `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` of any size,
      or a list of these. They are preprocessed as in training.
    - features: an array `(N, d)`, for a model that was trained on features.

    Examples
    --------
    >>> import numpy as np
    >>> import papi
    >>> images = np.zeros((2, 8, 8), np.uint8)
    >>> model = papi.load("runs/digits")
    >>> len(model.predict(images))
    2
    >>> model.predict_proba(images).shape
    (2, 10)
    >>> bool(np.allclose(np.linalg.norm(model.embed(images), axis=1), 1))
    True
    """

    def __init__(
        self, network: Network, card: ModelCard, device: torch.device, encoder: nn.Module | None = None
    ) -> None:
        self.network = network.to(device).eval()
        self.card = card
        self.device = device
        self.encoder = None if encoder is None else encoder.to(device).eval()
        self._root = Root()
        self._normalise = normaliser(card.shape, card.mean, card.std, device)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The class names, in the order of the columns of `predict_proba`."""
        return self.card.class_names

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input of `probabilities`: C, H, W of a preprocessed image, or the number of features."""
        return self.card.input_shape

    @property
    def preparation(self) -> Preparation | None:
        """Preprocessing of photos; None for features and for images of a fixed size."""
        return self.card.preparation

    def predict(self, images: Any) -> np.ndarray:
        """Return the name of the most likely class of each image, `(N,)`."""
        names: np.ndarray = np.array(self.class_names)[self.predict_proba(images).argmax(1)]
        return names

    def predict_proba(self, images: Any) -> np.ndarray:
        """Return the probability of each class, `(N, K)`, in the order of `class_names`."""
        return _finite(self._evaluated(images).calibrated(self.card.temperature).numpy())

    def embed(self, images: Any) -> np.ndarray:
        """Return embeddings: unit vectors `(N, d)` that are close together for images of one class."""
        return self._evaluated(images).embedding.numpy()

    def prepare(self, images: Any) -> np.ndarray:
        """Return preprocessed images `(N, C, H, W) uint8`, the input of exported models."""
        if len(self.shape) == 1:
            raise UserError(f"this model needs {self.shape[0]} features, not images: use them without `prepare`.")
        return np.concatenate(list(in_lanes(self._batches(images))))

    @torch.inference_mode()
    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """Compute `predict_proba` for one batch with the model's own shape and type, without checks."""
        batch = self._encoded(torch.from_numpy(samples).to(self.device))
        output: Output = self.network(self._normalise(batch))
        return _finite((output.logits.float() / self.card.temperature).softmax(1).cpu().numpy())

    def _evaluated(self, images: Any) -> Evaluation:
        if len(self.shape) == 1:
            return evaluate(self.network, self._features(images), self._normalise)
        parts = list(in_lanes(partial(_then, self._answers, read) for read in self._batches(images)))
        logits, embeddings = [part.logits for part in parts], [part.embedding for part in parts]
        return Evaluation(torch.cat(logits), torch.cat(embeddings), None)

    @torch.inference_mode()
    def _answers(self, batch: np.ndarray) -> Evaluation:
        encoded = self._encoded(torch.from_numpy(batch).to(self.device))
        return evaluate(self.network, encoded, self._normalise)

    def _encoded(self, batch: Tensor) -> Tensor:
        """Return the input of the network: embeddings if there is a frozen encoder, otherwise the batch itself."""
        if self.encoder is None or self.preparation is None:
            return batch
        normalise = NormaliseImages(self.preparation.mean, self.preparation.std, self.device)
        features: Tensor = self._root(self.encoder(normalise(batch)))
        return features.float()

    def _features(self, rows: Any) -> Tensor:
        array = np.asarray(rows, np.float32)
        self._require_shape(array, "features")
        return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(self.device)

    def _require_shape(self, array: np.ndarray, axes: str) -> None:
        if array.shape[1:] != self.shape:
            raise UserError(f"the samples have shape {array.shape[1:]} ({axes}), but this model needs {self.shape}.")

    def _batches(self, images: Any) -> Iterator[Callable[[], np.ndarray]]:
        """Yield functions that return batches `(B, C, H, W) uint8`; each decodes its images when it is called."""
        ready = self._as_they_are(images)
        if ready is not None and self.encoder is None:
            yield lambda: ready  # evaluation splits it into batches
            return
        size = rows_at_once(math.prod(self.shape), MOST_ROWS)
        if ready is not None:
            yield from (partial(np.array, ready[start : start + size]) for start in range(0, len(ready), size))
            return
        sources = list(images.sources) if isinstance(images, Photos) else sources_of(images)
        for start in range(0, len(sources), size):
            yield partial(self._stacked, sources[start : start + size])

    def _stacked(self, sources: list[Source]) -> np.ndarray:
        return np.stack([self._decoded(source) for source in sources])

    def _as_they_are(self, images: Any) -> np.ndarray | None:
        """Return an array that already has the network's input shape; None for other images."""
        if not isinstance(images, np.ndarray) or images.ndim not in (3, 4) or images.dtype.kind not in "biuf":
            return None
        if images.ndim == 3 and images.shape[2] == 3 and self.shape != (1, *images.shape[1:]):
            return None
        array = as_image_array(images, "the images")
        if array.shape[1:] != self.shape:
            return None
        return np.require(array, requirements=("C", "W"))

    def _decoded(self, source: Source) -> np.ndarray:
        """Decode one image as in training."""
        channels, height, width = self.shape
        try:
            if self.preparation is not None:
                return decode_square(source, self.preparation)
            return decode(source, Target(height, width, 3 if channels == 3 else 1))
        except ImageError as error:
            name = str(source) if isinstance(source, Path) else "an image"
            raise UserError(f"{name} {error}: remove it.") from error


def _then(answer: Callable[[np.ndarray], Evaluation], read: Callable[[], np.ndarray]) -> Evaluation:
    """Read a batch and evaluate it, in one thread."""
    return answer(read())


def _finite(probabilities: np.ndarray) -> np.ndarray:
    """Raise `UserError` if probabilities are not finite, which happens for very large inputs."""
    if not np.isfinite(probabilities).all():
        raise UserError(
            "the probabilities of some samples are not finite, because the samples or the weights of the model are too "
            "large or not numbers: check the samples, or train the model again."
        )
    return probabilities


def load(run: str | Path, device: str = "cpu", network: str | Factory | nn.Module | None = None) -> Model:
    """Load the model of a run.

    Parameters
    ----------
    run
        Folder of a finished run, or a `model.safetensors` file.
    device
        Device of the model: cpu, cuda, cuda:1 …
    network
        Code of a network that is not built in: `package.module:factory`, or the factory itself. For security, loading
        never imports code, or downloads weights of an encoder, only because a file names them.

    Returns
    -------
    Model
        The trained classifier.

    Raises
    ------
    UserError
        There is no model, or it cannot be read.

    Examples
    --------
    After `papi train --data digits --out runs/digits`:

    >>> import papi
    >>> model = papi.load("runs/digits")
    >>> model.class_names[:3]
    ('0', '1', '2')
    """
    stored: StoredModel = read_model(run, network=network)
    return Model(stored.network, stored.card, torch.device(device), stored.encoder)
