"""The optimizer and the learning rate that a config asks for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from papi.config import OptimSettings, Schedule
from papi.methods.schedules import cosine_by_epoch, halving, multistep, warmup_cosine
from papi.types import Progress

_WARMUP = 0.15  # share of all steps
_FLOOR = 1e-3  # share of the highest learning rate that is left at the end
_MILESTONES = (1 / 2, 3 / 4)  # where in the run a multistep schedule drops
_DROP = 0.1
_HALF_LIFE = 50  # epochs in which an exponential schedule falls to one half


def build_optimizer(module: nn.Module, config: OptimSettings) -> torch.optim.Optimizer:
    """SGD or Adam over all parameters that learn. Weight decay is part of the gradient in both, as in the releases."""
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    decaying = learning if config.decay == "all" else [p for p in learning if p.ndim > 1]
    rest = [] if config.decay == "all" else [p for p in learning if p.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": decaying, "weight_decay": config.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "adam":
        return torch.optim.Adam(groups, lr=config.lr, fused=True)
    nesterov = config.nesterov and config.momentum > 0
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=nesterov, fused=True)


def learning_rate(config: OptimSettings) -> Callable[[Progress], float]:
    """The learning rate as a function of where the run stands."""
    highest, share = config.lr, _SHARES[config.schedule]
    return lambda progress: highest * share(progress)


_SHARES: dict[Schedule, Callable[[Progress], float]] = {
    "cosine": lambda progress: cosine_by_epoch(progress, _FLOOR),
    "warmup-cosine": lambda progress: warmup_cosine(progress, _WARMUP, _FLOOR),
    "constant": lambda progress: 1.0,
    "multistep": lambda progress: multistep(progress, _MILESTONES, _DROP),
    "exponential": lambda progress: halving(progress, _HALF_LIFE),
}
