"""Models with random weights, for tests of what is done with a trained one."""

from pathlib import Path

import torch
from torch import nn

from papi.networks import NETWORKS, Network, build
from papi.runs.model import ModelCard, save_model

CLASSES = ("ant", 'bee, "queen"', "cat", "dog")


def write_model(
    path: Path,
    network: str = "small",
    shape: tuple[int, ...] = (1, 8, 8),
    classes: tuple[str, ...] = CLASSES,
    built: Network | None = None,
    temperature: float = 1.0,
) -> Path:
    """`model.safetensors` in a folder, with weights that give sure and different answers."""
    torch.manual_seed(0)
    built = built or build(network, shape, len(classes), project=True)
    for module in built.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):  # as if it had seen data
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    with torch.no_grad():
        built.classifier.weight.mul_(8)
    columns = shape[0]
    mean = tuple(0.4 + 0.05 * (k % 3) for k in range(columns))
    std = tuple(0.2 + 0.02 * (k % 3) for k in range(columns))
    path.mkdir(parents=True, exist_ok=True)
    assert network in NETWORKS
    card = ModelCard(network, classes, shape, mean, std, projects=True, temperature=temperature)
    save_model(path / "model.safetensors", built, card)
    return path
