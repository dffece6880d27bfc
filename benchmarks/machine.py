"""What the machine can do at best: a large matrix product, and a network's convolutions with nothing around them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

SIDE = 3072
FORWARDS, BACKWARDS = 4, 3  # of a step of PaPi


def matrix_product() -> tuple[Callable[[], object], int]:
    """A product to be timed, and how many operations it takes."""
    left, right, result = (torch.rand(SIDE, SIDE) for _ in range(3))
    return lambda: torch.mm(left, right, out=result), 2 * SIDE**3


def convolutions_alone(encoder: nn.Module, images: Tensor) -> Callable[[], None]:
    """All convolutions of a step's passes through an encoder, on inputs of the right size and layout."""
    layers: list[tuple[nn.Module, Tensor, Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        # The first layer's input is an image: nobody asks for its gradient.
        layers.append((layer, inputs[0].clone().requires_grad_(bool(layers)), torch.ones_like(output)))

    handles = [m.register_forward_hook(note) for m in encoder.modules() if isinstance(m, nn.Conv2d)]
    with torch.no_grad():
        encoder(images)
    for handle in handles:
        handle.remove()

    def run() -> None:
        for layer, given, gradient in layers:
            with torch.no_grad():
                for _ in range(FORWARDS - BACKWARDS):
                    layer(given)
            wanted = [p for p in (given, *layer.parameters()) if p.requires_grad]
            for _ in range(BACKWARDS):
                torch.autograd.grad(layer(given), wanted, gradient)

    return run
