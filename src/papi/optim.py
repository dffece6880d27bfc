"""The optimizer and the learning rate that a config asks for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from papi.config import OptimConfig
from papi.schedules import cosine_by_epoch, warmup_cosine
from papi.types import Progress

_WARMUP = 0.15  # share of all steps
_FLOOR = 1e-3  # share of the highest learning rate that is left at the end


def build_optimizer(module: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    """SGD over all parameters that learn."""
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    decaying = learning if config.decay == "all" else [p for p in learning if p.ndim > 1]
    rest = [] if config.decay == "all" else [p for p in learning if p.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": decaying, "weight_decay": config.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    assert config.lr is not None, "presets.complete fills in every value"
    assert config.momentum is not None
    return torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=config.lr,
        momentum=config.momentum,
        nesterov=bool(config.nesterov) and config.momentum > 0,
        fused=True,
    )


def learning_rate(config: OptimConfig) -> Callable[[Progress], float]:
    """The learning rate as a function of where the run stands."""
    assert config.lr is not None
    highest = config.lr
    if config.schedule == "cosine":
        return lambda progress: highest * cosine_by_epoch(progress, _FLOOR)
    return lambda progress: highest * warmup_cosine(progress, _WARMUP, _FLOOR)
