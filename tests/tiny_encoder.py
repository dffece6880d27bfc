"""An encoder for tests that need one to be fast: the weights are its own, and so is what it says about photos."""

import torch
from torch import nn

WIDTH = 12
NAME = f"{__name__}:encoder"

input_size = 16
mean = (0.5, 0.5, 0.5)
std = (0.25, 0.25, 0.25)
interpolation = "bilinear"


def encoder(input_shape: tuple[int, ...]) -> nn.Module:
    """The same weights every time, as if they came from a file; torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(
            nn.Conv2d(input_shape[0], 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, WIDTH, 3),
            nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * WIDTH, WIDTH),
        )  # fmt: skip
