"""Faster 1×1 convolutions for single photos.

In one thread and with fewer than 16 images, torch computes 1×1 convolutions with a generic implementation, which takes
1.5 times as long as oneDNN's for EfficientNet-Lite0. It makes an exception for dilated convolutions, and dilation has
no effect on a kernel of one pixel.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_DILATED = (2, 2)


@contextmanager
def fast_pointwise(network: nn.Module) -> Iterator[None]:
    """Within the context, 1×1 convolutions of the network are dilated; outputs are equal up to rounding."""
    found = [part for part in network.modules() if isinstance(part, nn.Conv2d) and part.kernel_size == (1, 1)]
    before = [part.dilation for part in found]
    for part in found:
        part.dilation = _DILATED
    try:
        yield
    finally:
        for part, dilation in zip(found, before, strict=True):
            part.dilation = dilation
