"""A training step of the default method on a feature table, against its matrix products alone, on one thread."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.measure import Line, in_turns, repeated
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.setup.run import Run, prepare
from papi.setup.settings import settings_for
from papi.training.engine import train_step
from papi.training.optim import build_optimizer
from papi.training.tally import Tally
from papi.types import Batch, Progress

COLUMNS, CANDIDATES, BATCH = 64, 10, 128
SAMPLES, CLASSES = 40_000, 500
EPOCH = 5  # every part of a step is active here
STEPS = 10  # in a turn
_PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default}


def table_run(samples: int, classes: int) -> Run:
    """The default run on a made-up table, as `papi train --data FEATURES.npz` prepares it."""
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, samples)
    features = random.standard_normal((samples, COLUMNS), np.float32)
    features[:, 0] += labels
    sets = np.zeros((samples, classes), bool)
    for _ in range(CANDIDATES - 1):
        sets[np.arange(samples), random.integers(0, classes, samples)] = True
    sets[np.arange(samples), labels] = True
    scale = (tuple(features.mean(0).tolist()), tuple(features.std(0).tolist()))
    names = tuple(map(str, range(classes)))
    data = Dataset("table", names, features, *scale, labels=labels, candidates=sets)
    config = RunConfig(data="table", threads=1, device="cpu", batch_size=BATCH, data_holdout=0)
    return prepare(data, sets, settings_for(config, data), {})


class TableTraining:
    """The steps of the training engine, from rows in memory to new weights."""

    def __init__(self, samples: int, classes: int) -> None:
        self.run = table_run(samples, classes)
        method = self.run.method
        self.optimizer = build_optimizer(method, self.run.settings.optim)
        self.tally = Tally(torch.arange(samples) % classes)
        method.train()
        method.start_epoch(self._place(0), self.run.loader.plain)
        self.batches: Iterator[tuple[int, Batch]] = iter(())

    def _place(self, step: int) -> Progress:
        return Progress(EPOCH, self.run.settings.epochs, step, len(self.run.loader), seed=0)

    def step(self) -> None:
        found = next(self.batches, None)
        if found is None:
            self.batches = enumerate(self.run.loader.epoch(EPOCH))
            found = next(self.batches)
        number, batch = found
        output = train_step(self.run.method, self.optimizer, 0.001, batch, self._place(number))
        self.tally.add(output, batch)


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the matrix products of the code inside, forward and backward, with copies of their operands."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function in _PRODUCTS:
            self.found.append((function, tuple(each.detach().clone() for each in args)))
        return function(*args, **(kwargs or {}))

    @torch.no_grad()
    def replay(self) -> None:
        """Compute the recorded products alone."""
        for function, operands in self.found:
            function(*operands)


def beside_products(samples: int, classes: int, times: int) -> Line:
    """The seconds of a step, and of its matrix products alone."""
    training = TableTraining(samples, classes)
    with Products() as products:
        training.step()
    seconds = in_turns([repeated(products.replay, STEPS), repeated(training.step, STEPS)], times)
    alone, step = (each / STEPS for each in seconds)
    item = f"step on a table of {samples:,} × {COLUMNS}, K={classes:,}, B={BATCH}, vs. its matrix products, 1 thread"
    return Line(item, alone, step, step / alone)


def measure(quick: bool) -> Iterator[Line]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # what `papi train` uses for feature tables
    try:
        yield beside_products(SAMPLES // 10, CLASSES, 3) if quick else beside_products(SAMPLES, CLASSES, 20)
    finally:
        torch.set_num_threads(threads)
