"""A perceptron with one hidden layer, for feature tables: frozen embeddings and tabular data."""

from torch import Tensor, nn

DROPOUT = 0.5  # without it, the network memorises wrong candidates of small tables before it finds the true ones


class MLP(nn.Module):
    """One hidden layer with batch norm and dropout. Takes features `(B, columns)`."""

    def __init__(self, input_shape: tuple[int, ...], width: int = 256) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(input_shape[0], width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
        )

    def forward(self, features: Tensor) -> Tensor:
        """`(B, columns)` to `(B, width)`."""
        hidden: Tensor = self.layers(features)
        return hidden
