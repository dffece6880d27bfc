"""A small problem for methods: fixed logits to check values by hand, and a literal version to walk beside."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from papi.methods.base import Method
from papi.networks import Network, Output, build
from papi.types import Batch, Progress

N, K, CHANNELS, SIZE = 24, 4, 1, 8

# The inputs of the golden values: logits of three samples, whose sets are mixed, full and a single label.
R0 = torch.tensor([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]])
R1 = torch.tensor([[1, 0, -1, 0.5], [0, 1, 0, -1], [0.5, 0.5, 2, -1]])
R2 = torch.tensor([[0, 0, 1, -1], [2, -0.5, 0.5, 0], [-1, 1, 0, 1]])
Y = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=torch.bool)
SOFTMAX_R0 = torch.tensor([[0.817575, 0, 0.182426, 0], [0.146398, 0.161795, 0.098134, 0.593673], [0, 1, 0, 0]])

START = Progress(epoch=0, epochs=200, step=0, steps=1, seed=0)
LATE = Progress(epoch=150, epochs=200, step=0, steps=1, seed=0)


def golden(actual: Tensor, expected: object) -> None:
    """Equal to the tolerance of the golden values."""
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=2e-6, rtol=0)


class Scripted(nn.Module):
    """Stands in for a network: gives prepared logits, one after another, and notes which wanted a gradient."""

    def __init__(self, *logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.ParameterList([nn.Parameter(each.clone()) for each in logits])
        self.with_gradient: list[bool] = []

    def forward(self, images: Tensor) -> Output:
        logits = self.logits[len(self.with_gradient)] * 1.0
        self.with_gradient.append(logits.requires_grad)
        return Output(images.flatten(1), logits)


def scripted(kind: type[Method], *logits: Tensor, candidates: Tensor = Y, **options: Any) -> tuple[Any, Batch]:
    """A method that will see these logits, and the batch of all samples."""
    method = kind(Scripted(*logits), candidates, kind.Config(**options))  # type: ignore[arg-type]
    images = torch.zeros(len(candidates), CHANNELS, SIZE, SIZE)
    return method, Batch(torch.arange(len(candidates)), (images,) * len(method.config.view_names), candidates)


def extremes() -> tuple[Tensor, Tensor]:
    """Logits of ±300 with the weight on candidates, on others and on both; sets mixed, full and a single label."""
    logits = 300 * torch.tensor([[-1, 1, -1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [1, -1, -1, -1]]).float()
    return logits, torch.cat([Y, Y[:1]])


def make_candidates() -> Tensor:
    random = torch.Generator().manual_seed(0)
    mask = torch.rand(N, K, generator=random) < 0.5
    mask[torch.arange(N), torch.randint(0, K, (N,), generator=random)] = True
    mask[0] = True  # a full set
    mask[1] = torch.arange(K) == 2  # a single label
    return mask


def make_network() -> Network:
    torch.manual_seed(0)
    return build("small", (CHANNELS, SIZE, SIZE), K, project=False).double()


def make_batch(method: Method, epoch: int, step: int, size: int = 8) -> Batch:
    random = torch.Generator().manual_seed(100 * epoch + step)
    index = torch.randperm(N, generator=random)[:size]
    views = tuple(
        torch.randn(size, CHANNELS, SIZE, SIZE, generator=random, dtype=torch.float64) for _ in method.config.view_names
    )
    return Batch(index, views, method.candidates[index])


class Literal:
    """A method as its specification reads, line by line. `update` follows the optimizer's step."""

    def __init__(self, network: Network, candidates: Tensor) -> None:
        self.network, self.candidates = copy.deepcopy(network), candidates
        self.state: Tensor | None = None

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        raise NotImplementedError

    def update(self, batch: Batch) -> None:
        pass


def walk_together(method: Method, state: Callable[[], Tensor | None], literal: Literal) -> None:
    """Train a method beside a literal version of it; compare losses, gradients, state and batch-norm at every step."""
    ours = torch.optim.SGD(method.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    theirs = torch.optim.SGD(literal.network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    for epoch in range(3):
        for step in range(3):
            batch, progress = make_batch(method, epoch, step), Progress(epoch, 3, step, 3, seed=5)
            output, expected = method.training_step(batch, progress), literal.loss(batch, progress)
            torch.testing.assert_close(output.loss, expected, atol=1e-10, rtol=1e-10)
            for optimizer, value in ((ours, output.loss), (theirs, expected)):
                optimizer.zero_grad()
                value.backward()  # type: ignore[no-untyped-call]
            for mine, other in zip(method.network.parameters(), literal.network.parameters(), strict=True):
                torch.testing.assert_close(mine.grad, other.grad, atol=1e-10, rtol=1e-8)
            ours.step()
            theirs.step()
            method.after_step(batch, progress)
            literal.update(batch)
            torch.testing.assert_close(state(), literal.state, atol=1e-11, rtol=0)
            for mine, other in zip(method.network.buffers(), literal.network.buffers(), strict=True):
                torch.testing.assert_close(mine, other, atol=1e-10, rtol=0)
