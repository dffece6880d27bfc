"""A finished run that provides the initial weights of another run."""

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
    """The weights and prototypes that a run starts from. The parent's confidence is passed on with the data."""

    weights: dict[str, Tensor]
    prototypes: np.ndarray | None = None  # (K, d), if its method has them
    record: ParentRecord | None = None  # its folder; None if it was never on disk

    def hand_weights(self, network: Network) -> None:
        """Load the weights before a method is built, so that a second network of the method also starts from them."""
        own = {name: value.shape for name, value in network.state_dict().items()}
        if own != {name: value.shape for name, value in self.weights.items()}:
            raise UserError(
                "the earlier model has a different network, classes or method: start a new run, or continue with the "
                "same network, classes and method."
            )
        network.load_state_dict(self.weights)

    def hand_prototypes(self, method: Method) -> None:
        """Load the prototypes into a method, if both have them."""
        if method.prototypes is None or self.prototypes is None:
            return
        if self.prototypes.shape != method.prototypes.value.shape:
            own = tuple(method.prototypes.value.shape)
            raise UserError(
                f"the earlier model has prototypes of shape {self.prototypes.shape}, but this run has {own}: start a "
                "new run, or continue with the same network, classes and method."
            )
        method.prototypes.value = torch.from_numpy(self.prototypes).to(method.prototypes.value.dtype)

    @property
    def model(self) -> str:
        """SHA-256 of its model.safetensors, which is part of the identity of the new run."""
        return "" if self.record is None else self.record.model


@dataclass(frozen=True)
class HeadStart(Parent):
    """A classifier (`weights`) that was trained on a frozen encoder, before both are fine-tuned together."""

    def hand_weights(self, network: Network) -> None:
        """Load the weights into the classifier; the encoder already has its own."""
        network.classifier.load_state_dict(self.weights)


def read_parent(path: Path) -> Parent:
    """Read the parent from the folder of a finished run."""
    folder = RunFolder(path)
    weights, _ = read_weights(path)
    model = hashlib.sha256(read_bytes(folder.model_file, memory_bytes(), inside=path)).hexdigest()
    return Parent(weights, folder.read_arrays().prototypes, ParentRecord(folder=str(path), model=model))
