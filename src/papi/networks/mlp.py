"""A perceptron with one hidden layer, for feature tables: frozen embeddings and tabular data."""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

DROPOUT = 0.5  # without it, the network memorises wrong candidates of small tables before it finds the true ones

_DECISIVE = 1 << 52  # the highest of the 53 bits that make a uniform number: whether it is below 1/2


class DropHalf(nn.Module):
    """Dropout of half the values, with the draws of torch's own.

    For each value, torch makes a uniform number from 64 random bits and compares it with 1/2. One of the bits decides
    this, so on a CPU it is read directly, in half the time.
    """

    def forward(self, values: Tensor) -> Tensor:
        """The values, half of them set to zero in training and the others doubled."""
        if not self.training or values.device.type != "cpu":
            return dropout(values, DROPOUT, self.training)
        bits = torch.empty(values.shape, dtype=torch.int64).random_()
        kept = bits.bitwise_and_(_DECISIVE) == 0
        return values * kept.to(values.dtype).mul_(2)


class MLP(nn.Module):
    """One hidden layer with batch norm and dropout. Takes features `(B, columns)`."""

    def __init__(self, input_shape: tuple[int, ...], width: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(input_shape[0], width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            DropHalf(),
        )

    def forward(self, features: Tensor) -> Tensor:
        """`(B, columns)` to `(B, width)`."""
        hidden: Tensor = self.layers(features)
        return hidden
