"""Training loops of PaPi to time step by step: ours, and the plain one from the same initial weights."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.plain_step import PlainPaPi
from benchmarks.views import MEAN, STD, PillowViews, photographs
from papi.config import OptimSettings
from papi.data.dataset import ViewRecipe
from papi.data.loader import Loader
from papi.data.views.images import ImageViews, NormaliseImages
from papi.methods.papi import PaPi
from papi.methods.papi_settings import PaPiConfig
from papi.networks import build
from papi.training.engine import train_step
from papi.training.optim import build_optimizer
from papi.training.tally import Tally
from papi.types import Batch, Progress

LR = 0.01
EPOCH, STEPS = 5, 4  # every part of a step is active here, including the alignment
CLASSES = 10


class Task(NamedTuple):
    """A network and the data it is trained on."""

    network: str
    channels: int
    size: int
    batch: int
    policy: str | None


class Training:
    """Our implementation, with the step of the training engine."""

    def __init__(self, task: Task) -> None:
        self.images = photographs(STEPS * task.batch, task.channels, task.size)
        random = torch.Generator().manual_seed(0)
        truth = torch.arange(len(self.images)) % CLASSES
        candidates = (torch.rand(len(self.images), CLASSES, generator=random) < 0.5).scatter(1, truth[:, None], True)
        torch.manual_seed(0)
        config = PaPiConfig()
        shape = (task.channels, task.size, task.size)
        self.method = PaPi(build(task.network, shape, CLASSES, project=True), candidates, config)
        settings = OptimSettings(
            optimizer="sgd", lr=LR, momentum=0.9, nesterov=False, weight_decay=1e-3, decay="all", schedule="constant"
        )
        self.optimizer = build_optimizer(self.method, settings)
        self.normalise = NormaliseImages(MEAN[: task.channels], STD[: task.channels], torch.device("cpu"))
        views = ImageViews(ViewRecipe(policy=task.policy))
        self.loader = Loader(
            self.images, candidates, views, self.normalise, config.view_names, batch_size=task.batch, seed=0
        )
        self.tally = Tally(truth)
        self.count = 0
        self.batches: Iterator[Batch] = iter(())  # of the current epoch

    def step(self) -> float:
        progress = place(self.count)
        if progress.step == 0:
            self.batches = self.loader.epoch(progress.epoch)
        batch = next(self.batches)
        output = train_step(self.method, self.optimizer, LR, batch, progress)
        self.tally.add(output, batch)
        self.count += 1
        return output.loss.item()

    def state(self) -> list[Tensor]:
        """Prototypes, confidence, weights."""
        weights = [parameter.detach().contiguous() for parameter in self.method.network.parameters()]
        return [self.method.prototypes.value, self.method.confidence.all_rows, *weights]


class PlainTraining:
    """The plain step, from the same initial weights as ours."""

    def __init__(self, task: Task) -> None:
        ours = Training(task)
        pixels = ours.images.permute(0, 2, 3, 1).squeeze(3).contiguous().numpy()
        self.plain = PlainPaPi(ours.method, pixels, PillowViews(task.size, task.channels, task.policy), task.batch, LR)
        self.count = 0

    def step(self) -> float:
        self.count += 1
        return self.plain.step(place(self.count - 1))

    def state(self) -> list[Tensor]:
        """Prototypes, confidence, weights."""
        weights = [parameter.detach() for parameter in self.plain.network.parameters()]
        return [self.plain.prototypes, self.plain.confidence, *weights]


def place(count: int) -> Progress:
    """The progress of the step with this number, counted from the start of the measurement."""
    return Progress(EPOCH + count // STEPS, 100, count % STEPS, STEPS, seed=0)
