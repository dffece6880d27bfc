"""The optimizer's parameters, and the learning rates by name."""

import subprocess
import sys
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from papi.config import OptimSettings
from papi.methods.base import Method
from papi.methods.cc import CC, CCConfig
from papi.networks import build
from papi.training.engine import train_step
from papi.training.optim import build_optimizer, clear_vanished, learning_rate
from papi.types import Batch, Progress

Optimizer = Literal["sgd", "adam"]
Schedule = Literal["cosine", "warmup-cosine", "constant", "multistep", "exponential"]


def config(
    optimizer: Optimizer = "sgd",
    schedule: Schedule = "constant",
    decay: Literal["all", "matrices"] = "all",
    momentum: float = 0.9,
) -> OptimSettings:
    return OptimSettings(
        optimizer=optimizer,
        lr=0.1,
        momentum=momentum,
        nesterov=True,
        weight_decay=0.01,
        decay=decay,
        schedule=schedule,
    )


def make_module() -> nn.Module:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    module[2].bias.requires_grad_(False)
    return module


@pytest.mark.parametrize(("optimizer", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)])
def test_kinds(optimizer: Optimizer, kind: type) -> None:
    built = build_optimizer(make_module(), config(optimizer))
    assert isinstance(built, kind)
    assert built.param_groups[0]["lr"] == 0.1
    assert built.param_groups[0]["weight_decay"] == 0.01


def test_steps_are_those_of_torch() -> None:
    ours, theirs = make_module(), make_module()
    built = build_optimizer(ours, config())
    groups = [
        {**group, "params": list(theirs.parameters())[:-1]} for group in build_optimizer(ours, config()).param_groups
    ]
    plain = torch.optim.SGD(groups)
    for step in range(3):
        for module, optimizer in ((ours, built), (theirs, plain)):
            optimizer.zero_grad()
            module(torch.full((4, 3), float(step)) + torch.eye(4, 3)).square().sum().backward()
            optimizer.step()
    assert all(mine.equal(other) for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_compiler_is_not_imported() -> None:
    """It takes longer to import than a head to train."""
    steps = """
import sys, torch
from papi.config import OptimSettings
from papi.training.optim import build_optimizer
for name in ("sgd", "adam"):
    module = torch.nn.Linear(2, 1)
    settings = OptimSettings(
        optimizer=name, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, decay="all", schedule="constant"
    )
    optimizer = build_optimizer(module, settings)
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", steps], check=True)


def test_nesterov_needs_momentum() -> None:
    assert build_optimizer(make_module(), config()).param_groups[0]["nesterov"]
    assert not build_optimizer(make_module(), config(momentum=0.0)).param_groups[0]["nesterov"]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_only_matrices_decay_if_asked(optimizer: Optimizer) -> None:
    module = make_module()
    decaying, rest = build_optimizer(module, config(optimizer, decay="matrices")).param_groups
    assert {id(p) for p in decaying["params"]} == {id(module[0].weight), id(module[2].weight)}
    assert {id(p) for p in rest["params"]} == {id(module[0].bias), id(module[1].weight), id(module[1].bias)}
    assert rest["weight_decay"] == 0


def test_all_that_learns_decays_by_default() -> None:
    module = make_module()
    (group,) = build_optimizer(module, config()).param_groups
    assert {id(p) for p in group["params"]} == {id(p) for p in module.parameters() if p.requires_grad}


def test_weight_decay_of_adam_is_part_of_the_gradient() -> None:
    """As in the releases (not AdamW): without any other gradient the first step has the full length."""
    weight = nn.Parameter(torch.tensor([2.0, -3.0]))
    module = nn.ParameterList([weight])
    optimizer = build_optimizer(module, config("adam"))
    weight.grad = torch.zeros(2)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([1.9, -2.9]))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", [0.1, 0.05005, 0.1 * (0.001 + 0.999 * (1 - 0.5**0.5) / 2)]),
        ("constant", [0.1, 0.1, 0.1]),
        ("multistep", [0.1, 0.01, 0.001]),
        ("exponential", [0.1, 0.1 * 0.5**2, 0.1 * 0.5**3]),
    ],
)
def test_schedules_by_name(schedule: Schedule, expected: list[float]) -> None:
    rate = learning_rate(config(schedule=schedule))
    assert [rate(Progress(epoch, 200, 0, 5, 0)) for epoch in (0, 100, 150)] == pytest.approx(expected)


def test_warmup_cosine_by_name() -> None:
    rate = learning_rate(config(schedule="warmup-cosine"))
    assert rate(Progress(1, 10, 4, 10, 0)) == pytest.approx(0.1)  # 15 % of the steps
    assert rate(Progress(9, 10, 9, 10, 0)) == pytest.approx(1e-4)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_state_survives_saving(optimizer: Optimizer) -> None:
    """A run that goes on from a checkpoint takes the very same steps."""

    def steps(module: nn.Module, built: torch.optim.Optimizer, count: int) -> list[Tensor]:
        for _ in range(count):
            built.zero_grad()
            module(torch.ones(2, 3) * torch.tensor([[1.0], [-1.0]])).square().sum().backward()
            built.step()
        return [parameter.detach().clone() for parameter in module.parameters()]

    whole = make_module()
    expected = steps(whole, build_optimizer(whole, config(optimizer)), 4)
    first, second = make_module(), make_module()
    before = build_optimizer(first, config(optimizer))
    steps(first, before, 2)
    second.load_state_dict(first.state_dict())
    after = build_optimizer(second, config(optimizer))
    after.load_state_dict(before.state_dict())
    for mine, other in zip(steps(second, after, 2), expected, strict=True):
        assert torch.equal(mine, other)


class TestEncoder:
    """An encoder may learn at a rate of its own."""

    def make(self, **settings: object) -> tuple[Method, torch.optim.Optimizer]:
        torch.manual_seed(0)
        network = build("mlp", (5,), 3, project=False)
        method = CC(network, torch.ones(4, 3, dtype=torch.bool), CCConfig())
        return method, build_optimizer(method, replace(config(decay="matrices"), **settings))  # type: ignore[arg-type]

    def test_its_parameters_are_apart(self) -> None:
        method, optimizer = self.make(encoder_lr=0.01)
        slow = [each for group in optimizer.param_groups if "share" in group for each in group["params"]]
        assert {id(each) for each in slow} == {id(each) for each in method.network.encoder.parameters()}
        assert sorted({group.get("share", 1.0) for group in optimizer.param_groups}) == pytest.approx([0.1, 1.0])
        counted = sum(len(group["params"]) for group in optimizer.param_groups)
        assert counted == len(list(method.parameters()))

    def test_as_all_others_unless_asked(self) -> None:
        assert not any("share" in group for group in self.make()[1].param_groups)

    def test_a_step_moves_it_by_its_own_rate(self) -> None:
        def moved(**settings: object) -> dict[str, Tensor]:
            method, optimizer = self.make(weight_decay=0.0, momentum=0.0, **settings)
            before = {name: value.clone() for name, value in method.named_parameters()}
            rows = torch.arange(20.0).view(4, 5) % 3
            sets = torch.tensor([[True, False, True]] * 4)
            train_step(method, optimizer, 0.1, Batch(torch.arange(4), (rows,), sets), Progress(0, 1, 0, 1, 0))
            return {name: value.detach() - before[name] for name, value in method.named_parameters()}

        alike, own = moved(), moved(encoder_lr=0.01)
        for name, change in alike.items():
            factor = 0.1 if name.startswith("network.encoder.") else 1.0
            torch.testing.assert_close(own[name], factor * change, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_weights_of_a_unit_that_is_never_active_become_zero(kind: Optimizer) -> None:
    module = nn.Linear(2, 2, bias=False)
    optimizer = build_optimizer(module, config(kind))
    module.weight.grad = torch.tensor([[1e-33, 1e-33], [0.5, -0.5]])
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1e-35, 1e-41], [0.25, 1e-20]]))
    optimizer.step()
    active = module.weight[1].clone()
    with torch.no_grad():
        module.weight[0] = torch.tensor([1e-35, 1e-41])
    clear_vanished(optimizer)
    assert torch.equal(module.weight[0], torch.zeros(2))
    assert torch.equal(module.weight[1], active)
    moments = optimizer.state[module.weight]["exp_avg" if kind == "adam" else "momentum_buffer"]
    assert torch.equal(moments[0], torch.zeros(2))
    assert (moments[1] != 0).all()


def test_a_weight_that_only_decays_ends_at_zero() -> None:
    module = nn.Linear(1, 1, bias=False)
    optimizer = build_optimizer(module, replace(config("sgd", momentum=0.0), weight_decay=5.0))
    for step in range(300):
        module.weight.grad = torch.zeros(1, 1)
        optimizer.step()
        if step % 10 == 9:
            clear_vanished(optimizer)
    assert module.weight.item() == 0.0
