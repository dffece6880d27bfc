"""The description of a pretrained encoder in the files of a run. Does not import torch, so that reports can read it."""

import re
from dataclasses import dataclass, field
from typing import Any

from papi.networks.preparation import Preparation

_CHECKSUM = re.compile("[0-9a-f]{64}")
_LONGEST_NAME = 1000


@dataclass(frozen=True)
class EncoderCard:
    """How to load a pretrained encoder again, and how photos are prepared for it."""

    reference: str  # timm:resnet18, hf:NAME, torchvision:NAME or package.module:factory
    checksum: str  # SHA-256 over the names and bytes of its weights
    preparation: Preparation
    config: dict[str, Any] = field(default_factory=dict)  # settings besides the name, as JSON values
    stored: bool = True  # its weights are in the model file; else a library provides them

    def to_json(self) -> dict[str, Any]:
        """All values by name."""
        return {
            "reference": self.reference,
            "checksum": self.checksum,
            "preparation": self.preparation.to_json(),
            "config": self.config,
            "stored": self.stored,
        }

    @classmethod
    def from_json(cls, values: object) -> "EncoderCard":
        """The inverse of `to_json`. Invalid values raise ValueError, because files may be untrusted."""
        match values:
            case {
                "reference": str(reference),
                "checksum": str(checksum),
                "preparation": dict(preparation),
                "config": dict(config),
                "stored": bool(stored),
            } if len(reference) <= _LONGEST_NAME and ":" in reference and _CHECKSUM.fullmatch(checksum):
                return cls(reference, checksum, Preparation.from_json(preparation), config, stored)
        raise ValueError("the description of its encoder is invalid")
