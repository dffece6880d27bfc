"""A finished run from whose weights another one starts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from papi.errors import UserError
from papi.files.reading import memory_bytes, read_bytes
from papi.methods.base import Method
from papi.networks import Network
from papi.runs.folder import RunFolder
from papi.runs.model import read_weights
from papi.runs.schema import ParentRecord


@dataclass(frozen=True)
class Parent:
    """What a run takes over. Its confidence comes with the data, like any confidence known before training."""

    weights: dict[str, Tensor]
    prototypes: np.ndarray | None = None  # (K, d), if its method has them
    record: ParentRecord | None = None  # where it lies; None if it was never on disk

    def hand_weights(self, network: Network) -> None:
        """Before a method is built on the network, so that a second network of the method starts from them, too."""
        own = {name: value.shape for name, value in network.state_dict().items()}
        if own != {name: value.shape for name, value in self.weights.items()}:
            raise UserError(
                "what was trained before is another network, with other classes, or of a method with another head: "
                "start anew, or go on with the same network, classes and method."
            )
        network.load_state_dict(self.weights)

    def hand_prototypes(self, method: Method) -> None:
        """To a method that has prototypes, if the parent's had them."""
        if method.prototypes is None or self.prototypes is None:
            return
        if self.prototypes.shape != method.prototypes.value.shape:
            own = tuple(method.prototypes.value.shape)
            raise UserError(
                f"what was trained before has prototypes of shape {self.prototypes.shape}, and this run has {own}: "
                "start anew, or go on with the same network, classes and method."
            )
        method.prototypes.value = torch.from_numpy(self.prototypes).to(method.prototypes.value.dtype)

    @property
    def model(self) -> str:
        """SHA-256 of its model.safetensors: part of the identity of what starts from it."""
        return "" if self.record is None else self.record.model


@dataclass(frozen=True)
class HeadStart(Parent):
    """A classifier that was trained on what a frozen encoder says: both go on together. Its weights are `weights`."""

    def hand_weights(self, network: Network) -> None:
        """To the classifier; the encoder has its own already."""
        network.classifier.load_state_dict(self.weights)


def read_parent(path: Path) -> Parent:
    """The parent in a folder of a finished run."""
    folder = RunFolder(path)
    weights, _ = read_weights(path)
    model = hashlib.sha256(read_bytes(folder.model_file, memory_bytes(), inside=path)).hexdigest()
    return Parent(weights, folder.read_arrays().prototypes, ParentRecord(folder=str(path), model=model))
