"""Networks that are not PaPi's own, as people bring them, and modules that are written for one test."""

from pathlib import Path
from uuid import uuid4

import pytest
import torch
from torch import Tensor, nn

WIDTH = 12

NETWORK = f"{__name__}:plain"


def plain(input_shape: tuple[int, ...]) -> nn.Module:
    """Without batch-norm and without dropout."""
    return nn.Sequential(
        nn.Conv2d(input_shape[0], WIDTH, 3, padding=1), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )


def with_dropout(input_shape: tuple[int, ...]) -> nn.Module:
    """Batch-norm and dropout: one pass in training mode changes the first and draws for the second."""
    return nn.Sequential(
        nn.Conv2d(input_shape[0], 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.LazyLinear(WIDTH),
    )


def of_table(input_shape: tuple[int, ...]) -> nn.Module:
    """For rows of features."""
    return nn.Sequential(nn.Linear(input_shape[0], WIDTH), nn.LayerNorm(WIDTH), nn.GELU())


class Tied(nn.Module):
    """A class as factory, with one weight under two names."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(input_shape[0], WIDTH, 3)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.second(self.first(self.stem(images).mean((2, 3))).relu())
        return features


class Branching(nn.Module):
    """What it does depends on what it sees, so no exporter can follow it."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = plain(input_shape)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder(images)
        return features if images.mean() > 0 else -3 * features


class FixedBatch(nn.Module):
    """Its trace only takes batches of the size it was traced with."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = plain(input_shape)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder(images)
        return features + torch.zeros(len(images.tolist()), 1)


def new_module(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a new module with this text, which no other test has imported."""
    name = f"outside_{uuid4().hex[:12]}"
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return name
