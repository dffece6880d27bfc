"""A whole training step of PaPi, from images in memory to new weights, against the plain one; and what it consists of."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.machine import convolutions_alone, matrix_product
from benchmarks.measure import Line, in_turns, speedup
from benchmarks.plain_step import PlainPaPi
from benchmarks.views import MEAN, STD, PillowViews, photographs
from papi.config import OptimConfig
from papi.data.dataset import ViewRecipe
from papi.data.loader import Loader
from papi.data.views import Normalise, Views
from papi.engine import train_step
from papi.methods.papi import PaPi, PaPiConfig
from papi.networks import build
from papi.optim import build_optimizer
from papi.tally import Tally
from papi.types import Progress

LR = 0.01
EPOCH = 5  # where every part of a step is at work: the alignment has come in
CLASSES = 10


class Training:
    """Our training, a step at a time."""

    def __init__(self, network: str, channels: int, size: int, batch: int, policy: str | None) -> None:
        self.images = photographs(4 * batch, channels, size)
        random = torch.Generator().manual_seed(0)
        truth = torch.arange(len(self.images)) % CLASSES
        candidates = (torch.rand(len(self.images), CLASSES, generator=random) < 0.5).scatter(1, truth[:, None], True)
        torch.manual_seed(0)
        self.method = PaPi(build(network, channels, CLASSES, project=True), candidates, PaPiConfig())
        settings = OptimConfig("sgd", lr=LR, momentum=0.9, nesterov=False, weight_decay=1e-3, decay="all")
        self.optimizer = build_optimizer(self.method, settings)
        views = Views(ViewRecipe(policy=policy))
        normalise = Normalise(MEAN[:channels], STD[:channels], torch.device("cpu"))
        self.loader = Loader(
            self.images, candidates, views, normalise, self.method.views, batch_size=batch, seed=0, drop_last=True
        )
        self.tally = Tally(truth)

    def step(self, progress: Progress) -> Tensor:
        """As the engine does it."""
        batch = next(self.loader.epoch(progress.epoch, progress.step))
        output = train_step(self.method, self.optimizer, LR, batch, progress)
        self.tally.add(output, batch)
        return output.loss.detach()


class Steps:
    """Calls a training's step at one place of a run after another."""

    def __init__(self, step: Callable[[Progress], object]) -> None:
        self.step, self.count = step, 0

    def __call__(self) -> object:
        place = Progress(EPOCH + self.count // 4, 100, self.count % 4, 4, seed=0)
        self.count += 1
        return self.step(place)


def against_plain(name: str, channels: int, size: int, batch: int, policy: str | None, times: int) -> tuple[
    Training, float, float
]:  # fmt: skip
    """Seconds of a plain step and of ours. Their first losses and all their weights after it must agree."""
    training = Training(name, channels, size, batch, policy)
    pixels = training.images.permute(0, 2, 3, 1).squeeze(3).contiguous().numpy()
    plain = PlainPaPi(training.method, pixels, PillowViews(size, channels, policy), batch, LR)
    reference, ours = Steps(plain.step), Steps(training.step)
    torch.testing.assert_close(float(ours()), reference(), rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]
    for mine, theirs in zip(training.method.network.parameters(), plain.network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
    return training, *in_turns([reference, ours], times)


class EncoderClock:
    """Sums up the seconds that a training spends in its encoder, forwards and backwards.

    The first of the encoder's outputs to get its gradient begins the backward passes through it: heads and losses come
    after it in the forward pass, so they are behind us by then. What comes between that and the optimizer is counted.
    """

    def __init__(self, training: Training) -> None:
        self.seconds, self.entered, self.backward = 0.0, 0.0, 0.0
        encoder = training.method.network.encoder
        self.handles = [
            encoder.register_forward_pre_hook(self._enter),
            encoder.register_forward_hook(self._leave),
            training.optimizer.register_step_pre_hook(self._backward_done),
        ]

    def _enter(self, *_: Any) -> None:
        self.entered = time.perf_counter()

    def _leave(self, _: Any, __: Any, features: Tensor) -> None:
        self.seconds += time.perf_counter() - self.entered
        if features.requires_grad:
            features.register_hook(self._gradient)

    def _gradient(self, _: Tensor) -> None:
        self.backward = self.backward or time.perf_counter()

    def _backward_done(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self.backward

    def start(self) -> None:
        self.seconds, self.backward = 0.0, 0.0

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def outside_encoder(training: Training, times: int) -> tuple[float, float]:
    """Seconds of the fastest of our steps, and how many of them are not the encoder's."""
    clock, steps, best = EncoderClock(training), Steps(training.step), (float("inf"), 0.0)
    for _ in range(times):
        clock.start()
        start = time.perf_counter()
        steps()
        total = time.perf_counter() - start
        best = min(best, (total, total - clock.seconds))
    clock.remove()
    return best


def share_line(name: str, batch: int, training: Training, target: float, times: int) -> Line:
    step, outside = outside_encoder(training, times)
    item = f"all but the encoder, share of a {name} step, B={batch}"
    return Line(item, step, outside, outside / step, target, at_most=True, share=outside / step)


def machine_lines(training: Training, batch: int, times: int) -> Iterator[Line]:
    """What share of the machine's limit a step reaches: of a large product, and of the network's own convolutions."""
    steps, (product, product_flops) = Steps(training.step), matrix_product()
    alone = convolutions_alone(training.method.network.encoder, training.loader.normalise(training.images[:batch]))
    with FlopCounterMode(display=False) as counter:
        steps()
    seconds = in_turns([product, alone, steps], times)
    rates = [work / each / 1e9 for work, each in zip(
        (product_flops, counter.get_total_flops(), counter.get_total_flops()), seconds, strict=True)]  # fmt: skip
    item = f"resnet18 step, B={batch}, share of "
    yield Line(f"{item}the rate of a large product", rates[0], rates[2], rates[2] / rates[0], 0.8, unit="GFLOP/s")
    yield Line(f"{item}its convolutions alone", seconds[1], seconds[2], seconds[1] / seconds[2])


def measure(quick: bool) -> Iterator[Line]:
    times = 3 if quick else 10
    training, *seconds = against_plain("small", 1, 28, 128, None, times)
    yield speedup("whole step, small, 28x28, B=128 : plain", *seconds, 2.5)
    yield share_line("small", 128, training, 0.12, times)
    if quick:
        return
    training, *seconds = against_plain("resnet18", 3, 32, 64, "cifar10", 3)
    yield speedup("whole step, resnet18, 32x32, B=64 : plain", *seconds, 1.2)
    yield share_line("resnet18", 64, training, 0.02, 2)
    yield from machine_lines(training, 64, 2)
    training, *seconds = against_plain("resnet18", 3, 32, 256, "cifar10", 2)
    yield speedup("whole step, resnet18, 32x32, B=256 : plain", *seconds, 1.35)
