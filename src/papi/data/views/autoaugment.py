"""Policies of image operations: AutoAugment with the PaPi release's sub-policies, for batches `(B, C, H, W) uint8`.

All random numbers of a batch are drawn first, as one array with a row for each image.
"""

import json
from pathlib import Path

import numpy as np
from torch import Tensor

from papi.data.views.operations import OPERATION_NUMBER, apply_operations
from papi.errors import unknown
from papi.randomness import Draws

# Operations with a random sign: (centre, distance from it at level 9). The distance at level 0 is 0.
_SIGNED_RANGES: dict[str, tuple[float, float]] = {
    "shearX": (0, 0.3),
    "shearY": (0, 0.3),
    "translateX": (0, 150 / 331),
    "translateY": (0, 150 / 331),
    "color": (1, 0.9),
    "contrast": (1, 0.9),
    "sharpness": (1, 0.9),
    "brightness": (1, 0.9),
}
# Operations without a random sign: (at level 0, at level 9). The release only rotates in one direction.
_PLAIN_RANGES: dict[str, tuple[float, float]] = {"rotate": (0, 30), "posterize": (8, 4), "solarize": (256, 0)}


class AutoAugment:
    """Draws one sub-policy per image; each of its two operations is applied with its own probability.

    Policies: `cifar10` (97 sub-policies), `svhn` (25), `imagenet` (119). Pixels from outside an image are grey.
    """

    fill = 128

    def __init__(self, policy_name: str) -> None:
        policies = json.loads(Path(__file__).with_name("autoaugment.json").read_text(encoding="utf-8"))
        del policies["about"]
        if policy_name not in policies:
            raise unknown("AutoAugment policy", policy_name, policies)
        rows = policies[policy_name]
        self.operations = np.array([[OPERATION_NUMBER[name] for name, _, _ in row] for row in rows])
        self.probabilities = np.array([[probability for _, probability, _ in row] for row in rows])
        parameters = np.array([[_parameter(name, level) for name, _, level in row] for row in rows])
        self.centres, self.distances = parameters[..., 0], parameters[..., 1]

    def __call__(self, images: Tensor, draws: Draws) -> Tensor:
        """Augment a batch `(B, C, H, W) uint8`, each image with its own sub-policy."""
        return self.apply(images, self.draw(len(images), draws))

    def draw(self, count: int, draws: Draws) -> np.ndarray:
        """`(count, 5)` uniform numbers: the sub-policy, whether each operation is applied, the sign of each."""
        return draws.random((count, 5))

    def plan(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the two operations for each row `(B, 5)` of `draw`, and their parameters: `(B, 2)` each."""
        chosen = (drawn[:, 0] * len(self.operations)).astype(np.int64)
        happens = drawn[:, 1:3] < self.probabilities[chosen]
        operations = np.where(happens, self.operations[chosen], OPERATION_NUMBER["identity"])
        signs = np.where(drawn[:, 3:5] < 0.5, -1.0, 1.0)
        return operations, self.centres[chosen] + signs * self.distances[chosen]

    def apply(self, images: Tensor, drawn: np.ndarray) -> Tensor:
        """Augment `(B, C, H, W) uint8` by the rows `(B, 5)` of `draw`."""
        operations, parameters = self.plan(drawn)
        for turn in range(2):
            images = apply_operations(images, operations[:, turn], parameters[:, turn], self.fill)
        return images


def _parameter(name: str, level: int) -> tuple[float, float]:
    """An operation's parameter at a level: its centre, and the distance from it in either direction."""
    if name in _SIGNED_RANGES:
        centre, furthest = _SIGNED_RANGES[name]
        return centre, float(np.linspace(0, furthest, 10)[level])
    value = float(np.linspace(*_PLAIN_RANGES.get(name, (0, 0)), 10)[level])
    return (round(value) if name == "posterize" else value), 0.0
