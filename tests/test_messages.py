"""How many messages the processes of a run send each other in a step. This process believes to be the first of two."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from papi import distributed
from papi.data import candidates as generators
from papi.data.loader import Loader
from papi.data.views.choose import normaliser_of, views_of
from papi.methods import METHODS, find_method
from papi.methods.base import Method
from papi.networks import Network
from papi.training import engine
from toy_data import make_toy_dataset

CPU = torch.device("cpu")


class OneOfTwo:
    """Stands in for torch.distributed: the other process always sends the same, and messages are counted."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count: Counter[str] = Counter()
        patch.setattr(distributed, "world_size", lambda: 2)
        patch.setattr(distributed, "rank", lambda: 0)
        patch.setattr(distributed, "_gradient_groups", ["gradients"])
        for name in ("all_gather", "all_reduce", "broadcast"):
            patch.setattr(distributed.distributed, name, getattr(self, name))

    def all_gather(self, received: list[Tensor], sent: Tensor) -> None:
        self.count["rows" if sent.ndim else "sizes"] += 1
        for each in received:
            each.copy_(sent)

    def all_reduce(self, values: Tensor, *_: Any, group: str | None = None, **__: Any) -> Any:
        self.count[group or "sums"] += 1
        return SimpleNamespace(wait=lambda: None)

    def broadcast(self, tensor: Tensor, src: int) -> None:
        pass


def make_run(name: str, **options: Any) -> tuple[Method, Loader]:
    data = make_toy_dataset()
    assert data.labels is not None
    kind = find_method(name)
    config = kind.Config(**options)
    sets = torch.from_numpy(generators.uniform(data.labels, len(data.class_names), 0.3, seed=0))
    extras: dict[str, Any] = {"truth": torch.from_numpy(data.labels)} if config.needs_truth else {}
    extras |= {"shape": data.input_shape} if config.needs_shape else {}
    size = data.samples[0].size
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(size, 16), nn.BatchNorm1d(16))
    method = kind(Network(encoder, 16, len(data.class_names), projection=8), sets, config, **extras)
    normalise = normaliser_of(data, CPU)
    samples = torch.from_numpy(data.samples)
    return method, Loader(samples, sets, views_of(data), normalise, config.view_names, batch_size=20, seed=0)


def messages_of_a_step(method: Method, loader: Loader, other: OneOfTwo) -> Counter[str]:
    """Of the second step: the first of an epoch may follow a look at all samples."""
    optimizer = torch.optim.SGD(method.parameters(), lr=0.01)
    truth = torch.from_numpy(make_toy_dataset().labels)
    before: Counter[str] = Counter()
    events = engine.fit(
        method, loader, optimizer, lambda _: 0.01, epochs=1, evaluate=lambda _: engine.Measured(), truth=truth
    )
    for event in events:
        if isinstance(event, engine.Stepped) and event.progress.step == 1:
            return other.count - before
        before = other.count.copy()
    raise AssertionError("the epoch is too short")


@pytest.mark.parametrize("passes", ["two", "paper", "one"])
def test_messages_of_papi(passes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows: views to mix, then confidence and prototypes. Sums: batch-norm statistics with losses, whether to stop."""
    other = OneOfTwo(monkeypatch)
    found = messages_of_a_step(*make_run("papi", passes=passes), other)
    assert found == {"rows": 1 if passes == "one" else 2, "gradients": 1, "sums": 2}


MESSAGES = {
    "papi": 5, "dpll": 4, "pico": 9, "valen": 8, "proden": 4, "lws": 4, "rc": 4, "cc": 3, "dirk": 7, "em": 5,
    "neighbours": 3, "supervised": 3,
}  # fmt: skip
IN_FULL: dict[str, dict[str, Any]] = {
    "pico": {"warmup_epochs": 0.0},
    "valen": {"warmup_epochs": 0},
    "dirk": {"refinement_weight": 1.0, "warmup_epochs": 0.0, "queue": 32},
}


@pytest.mark.parametrize("name", METHODS)
def test_messages_of_methods(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the warm-up, with every part of the loss."""
    found = messages_of_a_step(*make_run(name, **IN_FULL.get(name, {})), OneOfTwo(monkeypatch))
    assert found["sizes"] == 0  # everyone knows them
    assert found["gradients"] == 1
    assert found.total() == MESSAGES[name]


def test_rows_that_are_not_those_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    OneOfTwo(monkeypatch)
    part = distributed.split(11)
    with distributed.step_on(part):
        assert distributed.locate(5) == part
        with pytest.raises(AssertionError, match="rows of a step"):
            distributed.locate(6)
    assert distributed.locate(6).sizes == (6, 6)  # by asking


def test_large_networks_send_buckets_the_last_first(monkeypatch: pytest.MonkeyPatch) -> None:
    other = OneOfTwo(monkeypatch)
    monkeypatch.setattr(distributed, "BUCKET", 100)
    layers = nn.Sequential(*(nn.Linear(10, 10) for _ in range(5)), idle := nn.Linear(10, 10))
    parameters = list(layers.parameters())
    order: list[list[nn.Parameter]] = []
    send = distributed._send
    monkeypatch.setattr(distributed, "_send", lambda bucket: (order.append(bucket), send(bucket))[1])
    with distributed.adding_gradients(parameters):
        layers[:-1](torch.randn(3, 10)).sum().backward()
        assert not order  # the last layer has no gradient, and its bucket is the first
        for parameter in idle.parameters():
            parameter.grad = torch.zeros_like(parameter)
    assert [each for bucket in reversed(order) for each in bucket] == parameters
    assert other.count["gradients"] == len(order) == 6
    order.clear()
    layers.zero_grad()
    with distributed.adding_gradients(parameters):
        layers(torch.randn(3, 10)).sum().backward()
        assert len(order) == 6  # all were sent while the pass went on


def test_several_tensors_in_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    other = OneOfTwo(monkeypatch)
    part = distributed.split(7)
    rows = (torch.arange(3), torch.randn(3, 2, 4).double(), torch.rand(3) > 0.5, torch.randn(3, 5).bfloat16())
    for found, sent in zip(part.gather_all(*rows), rows, strict=True):
        assert found.dtype == sent.dtype
        assert torch.equal(found[:3], sent)
        assert found.shape == (7, *sent.shape[1:])
    assert other.count == {"rows": 1}
