"""A trained network for use: load a run, then predict or embed."""

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
from papi.runs.model import ModelCard, StoredModel, read_model
from papi.training.evaluation import Evaluation, evaluate

MOST_ROWS = 256  # images that are decoded and answered at a time; of large ones, fewer


class Model:
    """A trained classifier, for images or for rows of features `(N, d)`.

    Images are paths, folders, pictures of Pillow, `uint8` arrays `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` of any
    size, or a list of these. They are prepared as in training.
    """

    def __init__(
        self, network: Network, card: ModelCard, device: torch.device, encoder: nn.Module | None = None
    ) -> None:
        self.network = network.to(device).eval()
        self.card = card
        self.device = device
        self.encoder = None if encoder is None else encoder.to(device).eval()
        self._normalise = normaliser(card.shape, card.mean, card.std, device)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of `predict_proba`'s columns."""
        return self.card.class_names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample as `probabilities` takes it: C, H, W of a prepared image, or the number of features."""
        return self.card.input_shape

    @property
    def preparation(self) -> Preparation | None:
        """How photos are prepared; None for features, and for images that are squares already."""
        return self.card.preparation

    def predict(self, images: Any) -> np.ndarray:
        """The name of the likeliest class of each image, `(N,)`."""
        names: np.ndarray = np.array(self.class_names)[self.predict_proba(images).argmax(1)]
        return names

    def predict_proba(self, images: Any) -> np.ndarray:
        """Probability of each class, `(N, K)`, in the order of `class_names`."""
        return _finite(self._evaluated(images).calibrated(self.card.temperature).numpy())

    def embed(self, images: Any) -> np.ndarray:
        """Unit vectors `(N, d)` in which images of a class lie close together."""
        return self._evaluated(images).embedding.numpy()

    def prepare(self, images: Any) -> np.ndarray:
        """Images as the network sees them, `(N, C, H, W) uint8`: what exported models take."""
        if len(self.shape) == 1:
            raise UserError(f"this model takes {self.shape[0]} features: there is no image to prepare.")
        return np.concatenate(list(in_lanes(self._batches(images))))

    @torch.inference_mode()
    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """`predict_proba` of one batch that already has the model's own shape and type: nothing is checked."""
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
        """What the network takes: features, if a frozen encoder comes first; else the batch itself."""
        if self.encoder is None or self.preparation is None:
            return batch
        normalise = NormaliseImages(self.preparation.mean, self.preparation.std, self.device)
        features: Tensor = self.encoder(normalise(batch))
        return features.float()

    def _features(self, rows: Any) -> Tensor:
        array = np.asarray(rows, np.float32)
        self._require_shape(array, "features")
        return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(self.device)

    def _require_shape(self, array: np.ndarray, axes: str) -> None:
        if array.shape[1:] != self.shape:
            raise UserError(f"the samples are {array.shape[1:]} ({axes}): this model takes {self.shape}.")

    def _batches(self, images: Any) -> Iterator[Callable[[], np.ndarray]]:
        """Calls that give batches `(B, C, H, W) uint8`; each decodes its images when it is called."""
        ready = self._as_they_are(images)
        if ready is not None and self.encoder is None:
            yield lambda: ready  # evaluation takes it in parts
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
        """An array that already has the shape that the network takes."""
        if not isinstance(images, np.ndarray) or images.ndim not in (3, 4) or images.dtype.kind not in "biuf":
            return None
        if images.ndim == 3 and images.shape[2] == 3 and self.shape != (1, *images.shape[1:]):
            return None
        array = as_image_array(images, "the images")
        if array.shape[1:] != self.shape:
            return None
        return np.require(array, requirements=("C", "W"))

    def _decoded(self, source: Source) -> np.ndarray:
        """One image as in training."""
        channels, height, width = self.shape
        try:
            if self.preparation is not None:
                return decode_square(source, self.preparation)
            return decode(source, Target(height, width, 3 if channels == 3 else 1))
        except ImageError as error:
            name = str(source) if isinstance(source, Path) else "an image"
            raise UserError(f"{name} {error}: leave it out.") from error


def _then(answer: Callable[[np.ndarray], Evaluation], read: Callable[[], np.ndarray]) -> Evaluation:
    """Read a batch and answer, in one thread."""
    return answer(read())


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
    factory itself. A file that names code does not get it imported, and one that names an encoder of a library does
    not get its weights fetched.
    """
    stored: StoredModel = read_model(run, network=network)
    return Model(stored.network, stored.card, torch.device(device), stored.encoder)
