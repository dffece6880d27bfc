"""A custom network: a function that takes the shape of one sample and returns an encoder.

Train with it from the command line, or in Python:

    PYTHONPATH=examples papi train --network own_network:network
    PartialLabelClassifier(network=network).fit(X, y)
"""

from torch import nn


def network(input_shape: tuple[int, ...]) -> nn.Module:
    """Map images `(B, C, H, W)` to features `(B, 64)`."""
    return nn.Sequential(
        nn.Conv2d(input_shape[0], 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )
