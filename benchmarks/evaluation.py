"""Evaluation, against forward passes alone and against batches of 64 in the default layout with a graph."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.measure import Apart, Line, Work, beyond, fastest_apart, in_turns, side_by_side, speedup
from benchmarks.views import MEAN, STD, photographs
from papi.data.views.images import NormaliseImages
from papi.networks import Network, build
from papi.training.evaluation import evaluate


class Task(NamedTuple):
    """A network and the images it is evaluated on."""

    network: str
    channels: int
    size: int
    images: int

    def prepare(self) -> tuple[Network, Tensor]:
        torch.manual_seed(0)
        network = build(self.network, (self.channels, self.size, self.size), 10, project=True)
        return network, photographs(self.images, self.channels, self.size)


SMALL = Task("small", 1, 28, 4000)
RESNET = Task("resnet18", 3, 32, 512)
SIZES = (32, 64, 128, 256, 512, 1000)


class Ours:
    def __init__(self, task: Task) -> None:
        self.network, self.images = task.prepare()
        self.normalise = NormaliseImages(MEAN[: task.channels], STD[: task.channels], torch.device("cpu"))

    def run(self) -> tuple[Tensor, Tensor]:
        """Logits and unit vectors."""
        found = evaluate(self.network, self.images, self.normalise)
        return found.logits, found.embedding

    def bare(self, size: int) -> Work:
        """Forward passes on prepared inputs, in batches of this size."""
        batches = torch.split(self.normalise(self.images), size)

        @torch.inference_mode()
        def run() -> None:
            self.network.eval()
            for batch in batches:
                self.network(batch)

        return run

    def beside_forward_passes(self, times: int) -> tuple[float, float]:
        """Seconds of the forward passes in the fastest batches, and of the evaluation."""
        self.run()
        bare = [self.bare(size) for size in SIZES if size <= len(self.images)]
        seconds = in_turns(bare, times)
        return side_by_side(bare[seconds.index(min(seconds))], self.run, 2 * times)


class Plain:
    def __init__(self, task: Task) -> None:
        network, self.images = task.prepare()
        self.network: Network = network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.mean, self.std = (torch.tensor(each[: task.channels])[:, None, None] for each in (MEAN, STD))

    def run(self) -> tuple[Tensor, Tensor]:
        """Logits and unit vectors, as a script would compute them."""
        self.network.eval()
        logits, embeddings = [], []
        for part in torch.split(self.images, 64):
            output = self.network((part.float() / 255 - self.mean) / self.std)
            logits.append(output.logits.detach())
            embeddings.append(self.network.project(output.features).detach())
        return torch.cat(logits), torch.cat(embeddings)


def against_plain(task: Task, times: int) -> Line:
    with Apart(Plain, task, ours=False) as plain, Apart(Ours, task, ours=True) as ours:
        for mine, theirs in zip(ours.call("run")[1], plain.call("run")[1], strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
        seconds = fastest_apart([plain, ours], "run", times)
    return speedup(f"evaluation, {task.network}, {task.images:,} images, vs. plain, B=64", seconds)


def against_forward_passes(task: Task, times: int) -> Line:
    """Overhead of evaluation over the forward passes alone, at whichever batch size is fastest here.

    It runs in a separate process: depending on what earlier items left in memory, the overhead varies by up to a tenth.
    """
    with Apart(Ours, task, ours=True) as process:
        _, (limit, whole) = process.call("beside_forward_passes", times)
    item = f"evaluation, {task.network}, {task.images:,} images, overhead over forward passes"
    return beyond(item, limit, whole, 0.05)


def measure(quick: bool) -> Iterator[Line]:
    times = 3 if quick else 8
    yield against_plain(SMALL, times)
    yield against_forward_passes(SMALL, 2 * times)
    if not quick:
        yield against_plain(RESNET, 6)
        yield against_forward_passes(RESNET, 4)
