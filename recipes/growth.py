"""How the cost of a step grows with samples, classes, pixels and processes: docs/pictures/growth.svg.

    python -m recipes.growth

Takes less than five minutes. All figures are CPU milliseconds per training step of the default method, PaPi, on one
thread per process: the fastest of several turns, which hardly depends on other programs. The file contains the plotted
numbers as its description.
"""

import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import torch
from matplotlib.figure import Figure as Drawing

from benchmarks.feature_table import COLUMNS, table_run
from benchmarks.processes import Together
from benchmarks.step import SMALL
from benchmarks.training import Training
from papi.experiments.figures import COLOURS, STYLE
from papi.files.durable import replacing
from papi.training.allocator import keep_freed_memory
from papi.training.engine import train_step
from papi.training.optim import build_optimizer
from papi.types import Progress

FILE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "growth.svg"
SAMPLES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
CLASSES = (10, 30, 100, 300, 1000)
SIDES = (16, 24, 32, 48, 64)
PROCESSES = (1, 2, 4)
PIXEL_BATCH = 32
TURNS, STEPS = 8, 10


class Series(NamedTuple):
    """One panel: milliseconds per step by a quantity."""

    title: str
    unit: str  # of the quantity
    points: tuple[tuple[int, float], ...]


def by_samples() -> Series:
    points = tuple((count, milliseconds(_stepper(count, 100))) for count in SAMPLES)
    return Series("Samples", f"samples, {COLUMNS} features and 100 classes", points)


def by_classes() -> Series:
    points = tuple((count, milliseconds(_stepper(20_000, count))) for count in CLASSES)
    return Series("Classes", f"classes, 20,000 samples and {COLUMNS} features", points)


def by_pixels() -> Series:
    points = tuple(
        (side**2, milliseconds(Training(SMALL._replace(size=side, batch=PIXEL_BATCH)).step, 1)) for side in SIDES
    )
    return Series("Pixels", f"pixels, network small, {PIXEL_BATCH} images per step", points)


def by_processes() -> Series:
    points = []
    for count in PROCESSES:
        with Together(SMALL, 2, count) as processes:
            points.append((count, 1e3 * min(processes.turn().cpu for _ in range(1 + TURNS // 2))))
    return Series("Processes", f"processes, network small, {SMALL.batch} images per step", tuple(points))


def milliseconds(step: Callable[[], object], steps: int = STEPS) -> float:
    """CPU time of a step, the least of several turns after the first."""
    turns = []
    for _ in range(1 + TURNS):
        start = time.process_time()
        for _ in range(steps):
            step()
        turns.append((time.process_time() - start) / steps)
    return 1e3 * min(turns[1:])


def _stepper(samples: int, classes: int) -> Callable[[], object]:
    """A training step on a table, as `papi train --data FEATURES.npz` runs it."""
    run = table_run(samples, classes)
    optimizer = build_optimizer(run.method, run.settings.optim)
    run.method.train()
    run.method.start_epoch(Progress(0, run.settings.epochs, 0, len(run.loader), 0), run.loader.plain)
    batches = cycle(enumerate(islice(run.loader.epoch(0), STEPS)))

    def step() -> None:
        number, batch = next(batches)
        train_step(run.method, optimizer, 0.001, batch, Progress(0, run.settings.epochs, number, len(run.loader), 0))

    return step


def description(series: list[Series]) -> str:
    """The content of the figure as text."""
    told = [f"{each.title} ({each.unit}): {', '.join(f'{x:,} {y:.1f} ms' for x, y in each.points)}." for each in series]
    return " ".join(["CPU milliseconds per training step.", *told])


def draw(series: list[Series]) -> Drawing:
    """Four panels with logarithmic axes, in which a straight line of slope one is proportional growth."""
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(7.8, 5.2), layout="constrained")
        for axes, each in zip(drawing.subplots(2, 2).flat, series, strict=True):
            x, y = zip(*each.points, strict=True)
            axes.plot(x, y, marker="o", color=COLOURS[0], linewidth=2)
            axes.set(xscale="log", yscale="log", xlabel=each.unit, ylabel="CPU ms per step")
            axes.set_ylim(min(y) / 3, max(y) * 3)
            axes.set_xticks(x, [f"{value:,}" for value in x])
            axes.minorticks_off()
            axes.set_title(each.title, fontsize=10, loc="left")
            for place, value in each.points:
                axes.annotate(f"{value:.3g}", (place, value), xytext=(0, 6), textcoords="offset points", ha="center")
    return drawing


def write(series: list[Series], file: Path) -> None:
    """Save the figure as SVG."""
    with mpl.rc_context(STYLE), replacing(file) as stream:
        draw(series).savefig(stream, format="svg", metadata={"Date": None, "Description": description(series)})


def main() -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    series = [by_samples(), by_classes(), by_pixels(), by_processes()]
    write(series, FILE)
    print(description(series))


if __name__ == "__main__":
    main()
