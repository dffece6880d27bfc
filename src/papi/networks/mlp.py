"""A perceptron with two hidden layers, for feature tables: frozen embeddings and tabular data."""

from torch import Tensor, nn


class MLP(nn.Module):
    """Two hidden layers with batch-norm. Takes features `(B, columns)`."""

    def __init__(self, columns: int, width: int = 256) -> None:
        super().__init__()
        self.dimensions = width
        self.layers = nn.Sequential(
            nn.Linear(columns, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )

    def forward(self, features: Tensor) -> Tensor:
        hidden: Tensor = self.layers(features)
        return hidden
