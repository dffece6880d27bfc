"""The identity encoder: every network has a linear classifier, so with this encoder the network is linear."""

from torch import Tensor, nn


class Linear(nn.Module):
    """Returns features `(B, columns)` unchanged. Only the classifier is trained, which can memorise little."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.columns = input_shape[0]

    def forward(self, features: Tensor) -> Tensor:
        """`(B, columns)` to `(B, columns)`."""
        return features
