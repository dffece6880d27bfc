"""Estimates the memory of a training step on large images before it begins."""

import time

import torch
from torch import Tensor, nn

from papi.data.dataset import Dataset
from papi.data.images.cache import LARGEST_KEPT
from papi.methods.base import Method

TRIED = 8  # photos to decode to measure the speed


@torch.no_grad()
def step_bytes(method: Method, shape: tuple[int, ...], batch_size: int, device: torch.device) -> int:
    """Estimate the bytes of one step: the activations kept for the backward pass, plus half as much for gradients.

    Weights and the state of the method are small and not counted.
    """
    kept = 0

    def count(module: nn.Module, _: object, output: object) -> None:
        nonlocal kept
        if isinstance(output, Tensor):
            kept += output.numel() * output.element_size()

    network = method.network
    leaves = [module for module in network.modules() if not any(True for _ in module.children())]
    hooks = [module.register_forward_hook(count) for module in leaves]
    was_training = network.training
    try:
        network.eval()
        network(torch.zeros(2, *shape, device=device))
    finally:
        network.train(was_training)
        for hook in hooks:
            hook.remove()
    return int(1.5 * kept / 2) * batch_size * max(1, method.config.encoder_passes.backward)


def large_image_notes(dataset: Dataset, method: Method, batch_size: int, device: torch.device) -> tuple[str, ...]:
    """A note about memory and decoding speed if the images are large."""
    if dataset.kind != "images" or max(dataset.input_shape) <= LARGEST_KEPT:
        return ()
    memory = step_bytes(method, dataset.input_shape, batch_size, device) / 1e9
    side = dataset.input_shape[-1]
    said = f"a step on {batch_size} images of {side} x {side} pixels takes about {memory:.1f} GB of memory"
    if dataset.photos is None:
        return (f"{said}; a smaller --batch-size takes less.",)
    start = time.perf_counter()
    numbers = dataset.samples[:: max(1, len(dataset.samples) // TRIED)][:TRIED]
    for number in numbers.tolist():
        dataset.photos[number]
    rate = len(numbers) / (time.perf_counter() - start) * torch.get_num_threads()
    return (f"{said}, and about {rate:,.0f} photos a second can be read; a smaller --batch-size takes less memory.",)
