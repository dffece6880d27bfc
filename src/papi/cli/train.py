"""`papi train`: progress while it runs, one row an epoch, and at the end what came out and what to do next."""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from papi.cli.tensorboard import Scalars
from papi.cli.terminal import make_console, printable, process
from papi.config import RunConfig
from papi.training.allocator import keep_freed_memory

if TYPE_CHECKING:
    from papi.train import Event, Started

_DEFAULT = RunConfig()


def train(
    *,
    config: Annotated[RunConfig, Parameter(name="*")] = _DEFAULT,
    out: Annotated[Path | None, Parameter(group=Group("This run", sort_key=4))] = None,
    tensorboard: Annotated[bool, Parameter(group=Group("This run", sort_key=4), negative="")] = False,
) -> None:
    """Train a classifier from candidate labels.

    Without options: PaPi on 10,000 embedded images of clothes, each with its true label and every wrong one with
    probability 1/2; about two minutes on two cores. The same command again continues a run that was stopped.

    Parameters
    ----------
    out
        Folder for everything the run writes. [default: runs/, named after the settings]
    tensorboard
        Write the measurements of every epoch for TensorBoard, too.
    """
    keep_freed_memory()  # before anything large is allocated
    from papi import train as run  # torch takes seconds to load: not before the options are right

    folder = out or default_folder(config)
    follow(folder, lambda stop, prepare: run.train(config, folder, stop, prepare), tensorboard=tensorboard)


Begin = Callable[[Callable[[], bool], Callable[[str, int, int], None]], Iterator["Event"]]
"""Starts training, given who to ask whether to stop and who to tell of what takes its time before."""


def follow(folder: Path, begin: Begin, *, tensorboard: bool = False) -> None:
    """Show training as it goes, and end the process if it was stopped."""
    from papi import train as run
    from papi.training import engine

    scalars: Scalars | None = None
    console = make_console()
    with stop_signals() as received, progress_bar(console) as bar:
        task = bar.add_task("reading data", total=None)

        def prepare(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        for event in begin(lambda: bool(received), prepare):
            if isinstance(event, run.Started):
                announce(console, event, folder)
                scalars = Scalars(folder, event.epoch) if tensorboard and process() == 0 else None
                done = event.epoch * event.steps + event.step
                bar.update(task, total=(event.config.epochs or 0) * event.steps, completed=done)
            elif isinstance(event, engine.Stepped):
                bar.update(task, advance=1, description=f"epoch {event.progress.epoch + 1}/{event.progress.epochs}")
            elif isinstance(event, engine.EpochEnded):
                console.print(epoch_row(event.row), soft_wrap=True)
                if scalars:
                    scalars.add(event.row)
            elif isinstance(event, run.Finished):
                bar.stop()
                conclude(console, event.summary, folder, event.already)
            elif isinstance(event, run.Stopped):
                bar.stop()
                console.print(f"Stopped in epoch {event.epoch + 1} after step {event.step}; nothing is lost.")
                console.print("Continue with:")
                console.print(f"  {launcher()} {shlex.join(sys.argv[1:])}", soft_wrap=True)
                sys.exit(128 + (received[0] if received else signal.SIGTERM))  # another process may have got it


def default_folder(config: RunConfig) -> Path:
    """A folder that tells its main settings."""
    data = Path(config.data).resolve().stem
    sets = config.candidates
    made = sets.file.stem if sets.file else f"{sets.kind or 'q'}{sets.flip_rate:g}"
    return Path("runs") / f"{data}-{config.method.rpartition(':')[2]}-{made}-seed{config.seed}"


def launcher() -> str:
    """What this command begins with."""
    processes = os.environ.get("LOCAL_WORLD_SIZE")
    return f"torchrun --nproc-per-node {processes} -m papi" if processes else "papi"


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collects the first SIGTERM or SIGINT, to finish the step and save; a second one ends the process at once.

    Under `torchrun` the third does: it passes on what a terminal or a cluster has sent to every process already.
    """
    received: list[int] = []
    heard = 2 if "LOCAL_WORLD_SIZE" in os.environ else 1

    def remember(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) < heard:
            return
        for each in before:
            signal.signal(each, signal.SIG_DFL)  # the system's: it needs no turn of the interpreter, and no traceback

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def progress_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps, time left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # a log file gets the rows alone
    )


def announce(console: Console, started: "Started", folder: Path) -> None:
    """What is about to be trained on what."""
    config, dataset, sets = started.config, started.dataset, started.statistics
    processes = f"{started.processes} x " if started.processes > 1 else ""
    for problem in started.problems:
        console.print(f"Note: {printable(problem)}", soft_wrap=True)
    console.print(
        f"{config.method}{form(started)} on {printable(dataset.name)}: "
        f"{len(dataset.samples):,} {dataset.kind}, {len(dataset.class_names)} classes, "
        f"{sets['mean_candidates']:.2f} candidate labels an image "
        f"({sets['singletons']:.1%} have one, {sets['full_sets']:.1%} have all)"
    )
    console.print(
        f"network {config.network} ({started.parameters:,} parameters), preset {config.preset}: "
        f"{config.epochs} epochs of {started.steps} steps on "
        f"{processes}{started.device} ({started.threads} threads), in {folder}"
    )
    if started.epoch or started.step:
        console.print(f"continuing in epoch {started.epoch + 1} after step {started.step}")
    held_out = "  covering rate" if config.data_holdout else ""
    header = f"epoch    loss  test accuracy  prototypes  resolved labels  confidence{held_out}  seconds"
    console.print(header, style="bold", soft_wrap=True)


def form(started: "Started") -> str:
    """What a step of this method costs, in words: ` (passes=two: 2 forward and 2 backward passes a step)`."""
    counts = re.fullmatch(r"(\d+)f \+ (\d+)b", started.passes)
    if not counts:
        return ""
    chosen = started.config.options.get("passes")  # of a method that has several forms
    return f" ({f'passes={chosen}: ' if chosen else ''}{counts[1]} forward and {counts[2]} backward passes a step)"


def epoch_row(row: dict[str, Any]) -> str:
    def percent(name: str, width: int) -> str:
        return f"{row[name]:.2%}".rjust(width) if name in row else "–".rjust(width)

    return (
        f"{row['epoch'] + 1:5d} {row['loss']:7.3f} {percent('test_accuracy', 14)} {percent('prototype_accuracy', 11)}"
        f" {percent('disambiguation_accuracy', 16)} {percent('mean_confidence', 11)}"
        f"{percent('covering_rate', 15) if 'covering_rate' in row else ''} {row['seconds']:8.1f}"
    )


def conclude(console: Console, summary: dict[str, Any], folder: Path, already: bool) -> None:
    """The result, where it lies, and what to do next."""
    console.print()
    if already:
        console.print("This run is already complete; nothing was trained.")
    if summary["test_accuracy"] is not None:
        console.print(
            f"Test accuracy {summary['test_accuracy']:.2%} ({_which_epoch(summary)}; best of all epochs, chosen on the "
            f"test images: {summary['test_accuracy_best']:.2%})",
            style="bold",
            soft_wrap=True,
        )
    elif summary.get("select", "last") != "last":
        console.print(f"The model is that of {_which_epoch(summary)}", style="bold")
    if summary.get("calibration_error") is not None:
        console.print(_calibration(summary))
    if summary["disambiguation_accuracy"] is not None:
        console.print(
            f"Of {summary['ambiguous_images']:,} training images with several possible labels, "
            f"{summary['ambiguous_resolved']:,} were resolved to the true one "
            f"({summary['ambiguous_resolved'] / max(1, summary['ambiguous_images']):.2%})"
        )
    console.print(f"Trained in {summary['seconds']:.0f} s at {summary['images_per_second']:,.0f} images/s")
    console.print(f"Everything is in {folder}: model.safetensors, metrics.jsonl, summary.json")
    console.print("Next:")
    console.print(f"  papi report {shlex.quote(str(folder))} --open", soft_wrap=True)
    console.print(f"  papi labels {shlex.quote(str(folder))}", soft_wrap=True)
    if summary["test_accuracy"] is not None:
        console.print(f"  papi evaluate {shlex.quote(str(folder))}", soft_wrap=True)
    use = f"import papi; print(papi.load({json.dumps(str(folder))}).class_names)"
    console.print(f"  python -c {shlex.quote(use)}", soft_wrap=True)


def _which_epoch(summary: dict[str, Any]) -> str:
    """The epoch of the model, and why that one."""
    rule = summary.get("select", "last")  # runs of earlier versions do not say
    if rule == "last":
        return "last epoch"
    last = summary["test_accuracy_last"]
    beside = "" if last is None else f"; last epoch: {last:.2%}"
    criterion = summary[rule.replace("-", "_")]
    return f"epoch {summary['picked_epoch'] + 1}, picked by its {rule.replace('-', ' ')} of {criterion:.2%}{beside}"


def _calibration(summary: dict[str, Any]) -> str:
    """How far the model's certainty is from how often it is right."""
    told = f"Calibration error {summary['calibration_error']:.2%}"
    if summary["temperature"] == 1:
        return told
    return f"{told} at temperature {summary['temperature']:.3f} (without it {summary['uncalibrated_error']:.2%})"
