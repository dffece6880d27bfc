"""A whole training step, from images in memory to new weights: ours against the plain one, and the parts of ours."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.machine import convolutions_alone, matrix_product
from benchmarks.measure import Apart, Line, beyond, fastest_apart, in_turns, speedup
from benchmarks.training import PlainTraining, Task, Training

SMALL = Task("small", 1, 28, 128, None)
RESNET = Task("resnet18", 3, 32, 64, "cifar10")


def against_plain(task: Task, times: int, steps: int = 1) -> Line:
    """Both must have the same loss, weights, prototypes and confidence after a step, up to rounding.

    If steps are short, each turn runs several `steps`, because the first one starts with cold caches.
    """
    with Apart(PlainTraining, task, ours=False) as plain, Apart(Training, task, ours=True) as ours:
        (_, loss), (_, reference) = ours.call("step"), plain.call("step")
        torch.testing.assert_close(loss, reference, rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(ours.call("state")[1], plain.call("state")[1], strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
        seconds = fastest_apart([plain, ours], "step", times, steps)
    item = f"whole step, {task.network}, {task.size}x{task.size}, B={task.batch}, vs. plain"
    return speedup(item, seconds)


def memory_settings(task: Task, times: int) -> Line:
    """Our step with the default settings of the C library, against the same step with those of `papi train`."""
    with Apart(Training, task, ours=False) as default, Apart(Training, task, ours=True) as ours:
        assert default.call("step")[1] == ours.call("step")[1]
        seconds = fastest_apart([default, ours], "step", times)
    return speedup(f"whole step, {task.network}, B={task.batch}, vs. default glibc settings", seconds)


class EncoderClock:
    """Adds up the seconds spent in the encoder, forward and backward.

    The backward passes through the encoder begin when the first of its outputs receives its gradient: by then, the
    backward passes of heads and losses are done. The time from there to the optimizer step is counted.
    """

    def __init__(self, training: Training) -> None:
        self.seconds, self.entered, self.backward = 0.0, 0.0, 0.0
        encoder = training.method.network.encoder
        encoder.register_forward_pre_hook(self._enter)
        encoder.register_forward_hook(self._leave)
        training.optimizer.register_step_pre_hook(self._backward_done)

    def start(self) -> None:
        self.seconds, self.backward = 0.0, 0.0

    def _enter(self, *_: Any) -> None:
        self.entered = time.perf_counter()

    def _leave(self, _: Any, __: Any, features: Tensor) -> None:
        self.seconds += time.perf_counter() - self.entered
        if features.requires_grad:
            features.register_hook(self._gradient)  # type: ignore[no-untyped-call]

    def _gradient(self, _: Tensor) -> None:
        self.backward = self.backward or time.perf_counter()

    def _backward_done(self, *_: Any) -> None:
        self.seconds += time.perf_counter() - self.backward


def outside_encoder(task: Task, training: Training, times: int, target: float) -> Line:
    """Overhead of data, heads, losses, state and optimizer over the encoder passes, from the fastest time of each."""
    clock, found = EncoderClock(training), []
    for _ in range(times):
        clock.start()
        start = time.perf_counter()
        training.step()
        found.append((time.perf_counter() - start, clock.seconds))
    whole, encoder = (min(seconds) for seconds in zip(*found, strict=True))
    line = beyond(f"whole step, {task.network}, B={task.batch}, overhead over encoder", encoder, whole, target)
    return replace(line, share=1 - encoder / whole)


def limits(task: Task, training: Training, times: int) -> Iterator[Line]:
    """How close a step comes to the limits of the machine: a large matrix product, and its convolutions alone."""
    product, product_flops = matrix_product()
    alone = convolutions_alone(training.method.network.encoder, training.normalise(training.images[: task.batch]))
    with FlopCounterMode(display=False) as counter:
        training.step()
    product_seconds, alone_seconds, step = in_turns([product, alone, training.step], times)
    limit, reached = product_flops / product_seconds / 1e9, counter.get_total_flops() / step / 1e9
    item = f"{task.network} step, B={task.batch}, vs."
    yield Line(f"{item} rate of a large matrix product", limit, reached, reached / limit, unit="GFLOP/s")
    yield Line(f"{item} its convolutions alone", alone_seconds, step, alone_seconds / step)


def measure(quick: bool) -> Iterator[Line]:
    times = 4 if quick else 12
    yield against_plain(SMALL, times, steps=5)
    training = Training(SMALL)
    yield outside_encoder(SMALL, training, 5 * times, 0.12)
    if quick:
        return
    yield from limits(SMALL, training, times)
    yield memory_settings(SMALL._replace(batch=256), times)
    yield against_plain(RESNET, 6)
    training = Training(RESNET)
    yield from limits(RESNET, training, 5)
    yield outside_encoder(RESNET, training, 4, 0.02)
    yield against_plain(RESNET._replace(batch=256), 2)
