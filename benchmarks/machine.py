"""Upper limits of the machine: a large matrix product, and the convolutions of a network alone."""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

SIDE = 3072
FORWARDS, BACKWARDS = 4, 3  # passes per PaPi step


def matrix_product() -> tuple[Callable[[], object], int]:
    """A matrix product to time, and its number of floating-point operations."""
    left, right, result = (torch.rand(SIDE, SIDE) for _ in range(3))
    return lambda: torch.mm(left, right, out=result), 2 * SIDE**3


def free_share() -> float:
    """Share of the CPU that this process gets while it computes on all its threads: the best of three measurements."""
    product, _ = matrix_product()
    product()
    found = []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        product()
        taken = time.process_time() - processor
        found.append(taken / (time.perf_counter() - wall) / torch.get_num_threads())
    return max(found)


def convolutions_alone(encoder: nn.Module, images: Tensor) -> Callable[[], None]:
    """All convolutions in the encoder passes of a step, on inputs of the right size and layout."""
    layers: list[tuple[nn.Module, Tensor, Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        # The input of the first layer is an image and needs no gradient.
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
