"""Builds the optimizer and the learning-rate schedule of a config."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import torch
from torch import nn

from papi.config import OptimSettings, Schedule
from papi.methods.schedules import cosine_by_epoch, halving, multistep, warmup_cosine
from papi.types import Progress

_WARMUP = 0.15  # fraction of all steps
_FLOOR = 1e-3  # final learning rate, as a fraction of the highest
_MILESTONES = (1 / 2, 3 / 4)  # fractions of the run at which a multistep schedule drops
_DROP = 0.1
_ENCODER = ".encoder."  # part of the names of encoder parameters
_HALF_LIFE = 50  # epochs after which an exponential schedule has halved
_VANISHED = 1e-30  # far above the smallest normal float32, 1e-38, and far below any number that makes a difference


class _Light(torch.optim.Optimizer):
    """torch's optimizers without their wrappers for its compiler.

    The first call of a wrapped method imports the compiler, which takes longer than some heads take to train.
    """

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = unwrap(torch.optim.Optimizer.load_state_dict)


class SGD(_Light, torch.optim.SGD):
    """`torch.optim.SGD`."""

    step = torch.no_grad()(unwrap(torch.optim.SGD.step))


class Adam(_Light, torch.optim.Adam):
    """`torch.optim.Adam`."""

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


def build_optimizer(module: nn.Module, config: OptimSettings) -> torch.optim.Optimizer:
    """Build SGD or Adam over all trainable parameters. Both add weight decay to the gradient, as the releases do.

    An encoder with its own learning rate has its own parameter groups, whose `share` scales the learning rate.
    """
    learning = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    encoder = [name for name in learning if config.encoder_lr and _ENCODER in f".{name}"]
    rest = [learning[name] for name in learning if name not in set(encoder)]
    groups = _by_decay(rest, config)
    if encoder:
        share = config.encoder_lr / config.lr if config.lr else 0.0
        groups += [group | {"share": share} for group in _by_decay([learning[name] for name in encoder], config)]
    if config.optimizer == "adam":
        return Adam(groups, lr=config.lr, fused=True)
    nesterov = config.nesterov and config.momentum > 0
    return SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=nesterov, fused=True)


def _by_decay(parameters: list[nn.Parameter], config: OptimSettings) -> list[dict[str, Any]]:
    """Parameter groups with and without weight decay."""
    decays = {id(each) for each in parameters if config.decay == "all" or each.ndim > 1}
    groups: list[dict[str, Any]] = [
        {"params": [each for each in parameters if id(each) in decays], "weight_decay": config.weight_decay},
        {"params": [each for each in parameters if id(each) not in decays], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


@torch.no_grad()
def clear_vanished(optimizer: torch.optim.Optimizer) -> None:
    """Set vanishingly small weights and moments to exactly zero.

    The weights of a unit that is never active only decay. Once they are subnormal, many processors take a hundred times
    as long for each product with them.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for values in (parameter, *optimizer.state.get(parameter, {}).values()):
                if torch.is_tensor(values) and values.is_floating_point():
                    values.masked_fill_(values.abs() < _VANISHED, 0.0)


def learning_rate(config: OptimSettings) -> Callable[[Progress], float]:
    """The learning rate as a function of the progress of the run."""
    highest, share = config.lr, _SHARES[config.schedule]
    return lambda progress: highest * share(progress)


_SHARES: dict[Schedule, Callable[[Progress], float]] = {
    "cosine": lambda progress: cosine_by_epoch(progress, _FLOOR),
    "warmup-cosine": lambda progress: warmup_cosine(progress, _WARMUP, _FLOOR),
    "constant": lambda progress: 1.0,
    "multistep": lambda progress: multistep(progress, _MILESTONES, _DROP),
    "exponential": lambda progress: halving(progress, _HALF_LIFE),
}
