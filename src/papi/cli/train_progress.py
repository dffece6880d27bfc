"""Training in the terminal: a progress bar, one row for each epoch, then the result and what to do next."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from papi import train as run
from papi.cli.output import lasting_output
from papi.cli.tensorboard import Scalars
from papi.cli.terminal import make_console, printable, process
from papi.config import RunConfig
from papi.methods.config import Passes
from papi.runs.schema import EpochRow, Summary
from papi.training.engine import EpochEnded, Stepped

Begin = Callable[[Callable[[], bool], Callable[[str, int, int], None]], Iterator[run.Event]]
"""Starts training. Its arguments are asked whether to stop, and told how far the preparations are."""


def show_training(config: RunConfig, folder: Path, *, tensorboard: bool) -> None:
    """Train a run and show it."""
    follow(folder, lambda stop, prepare: run.train(config, folder, stop, prepare), tensorboard=tensorboard)


def show_training_on(
    parent: Path,
    decisions: Path,
    folder: Path,
    epochs: int | None,
    data_dir: Path | None,
    method: str | None,
    network: str | None,
) -> None:
    """Continue a finished run with a person's decisions, and show it."""

    def begin(stop: Callable[[], bool], prepare: Callable[[str, int, int], None]) -> Iterator[run.Event]:
        return run.train_on(
            parent,
            decisions,
            folder,
            epochs=epochs,
            data_dir=data_dir,
            method=method,
            network=network,
            stop_requested=stop,
            progress=prepare,
        )

    follow(folder, begin)


def follow(folder: Path, begin: Begin, *, tensorboard: bool = False) -> None:
    """Show training as it goes. If it is stopped, say how to continue and end the process."""
    scalars: Scalars | None = None
    console = make_console()
    with lasting_output(), stop_signals() as received, progress_bar(console) as bar:
        task = bar.add_task("reading data", total=None)

        def prepare(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        for event in begin(lambda: bool(received), prepare):
            if isinstance(event, run.Started):
                announce(console, event, folder)
                scalars = Scalars(folder, event.epoch) if tensorboard and process() == 0 else None
                done = event.epoch * event.steps + event.step
                bar.update(task, total=event.settings.epochs * event.steps, completed=done)
            elif isinstance(event, Stepped):
                bar.update(task, advance=1, description=f"epoch {event.progress.epoch + 1}/{event.progress.epochs}")
            elif isinstance(event, EpochEnded):
                console.print(epoch_row(event.row), soft_wrap=True)
                if scalars:
                    scalars.add(event.row)
            elif isinstance(event, run.Finished):
                bar.stop()
                conclude(console, event.summary, folder, already=event.trained is None)
            elif isinstance(event, run.Stopped):
                bar.stop()
                console.print(f"Stopped in epoch {event.epoch + 1} after step {event.step}; nothing is lost.")
                console.print("Continue with:")
                console.print(f"  {launcher()} {shlex.join(sys.argv[1:])}", soft_wrap=True)
                sys.exit(128 + (received[0] if received else signal.SIGTERM))  # another process may have got it


def launcher() -> str:
    """Return the words that start this command: `papi`, or `torchrun … -m papi`."""
    processes = os.environ.get("LOCAL_WORLD_SIZE")
    return f"torchrun --nproc-per-node {processes} -m papi" if processes else "papi"


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect the first SIGTERM or SIGINT, so that the step is finished and saved; a second ends the process at once.

    Under `torchrun` the third ends it, because `torchrun` passes on what every process has already received.
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
    """Return a bar that counts steps; a log file gets none."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps, time left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def announce(console: Console, started: run.Started, folder: Path) -> None:
    """Say what is about to be trained on what data."""
    settings, dataset, sets = started.settings, started.dataset, started.statistics
    processes = f"{started.processes} x " if started.processes > 1 else ""
    for problem in started.problems:
        console.print(f"Note: {printable(problem)}", soft_wrap=True)
    console.print(
        f"{settings.method} ({cost(started)}) on {printable(dataset.name)}: "
        f"{len(dataset.samples):,} {dataset.kind}, {len(dataset.class_names)} classes, "
        f"{sets['mean_candidates']:.2f} candidate labels an image "
        f"({sets['singletons']:.1%} have one, {sets['full_sets']:.1%} have all)"
    )
    console.print(
        f"network {settings.network} ({started.parameters:,} parameters), preset {settings.preset}: "
        f"{settings.epochs} epochs of {started.steps} steps on "
        f"{processes}{started.device} ({started.threads} threads), in {folder}"
    )
    if started.epoch or started.step:
        console.print(f"continuing in epoch {started.epoch + 1} after step {started.step}")
    held_out = "  covering rate" if settings.data_holdout else ""
    header = f"epoch    loss  test accuracy  prototypes  resolved labels  confidence{held_out}  seconds"
    console.print(header, style="bold", soft_wrap=True)


def cost(started: run.Started) -> str:
    """Return what a step of the method costs: `passes=two: 2 forward and 2 backward passes a step`."""
    chosen = started.settings.options.get("passes")  # of a method that has several forms
    form = f"passes={chosen}: " if chosen else ""
    warmup, own = started.passes.warmup, _count(started.passes)
    return f"{form}{own} a step" if warmup is None else f"{form}{_count(warmup)} a step, {own} after the warm-up"


def _count(passes: Passes) -> str:
    return f"{passes.forward} forward and {passes.backward} backward pass{'' if passes.backward == 1 else 'es'}"


def epoch_row(row: EpochRow) -> str:
    """Return the row of an epoch, in the columns that `announce` has named."""
    covering = "" if row.covering_rate is None else _percent(row.covering_rate, 15)
    return (
        f"{row.epoch + 1:5d} {row.loss:7.3f} {_percent(row.test_accuracy, 14)} {_percent(row.prototype_accuracy, 11)}"
        f" {_percent(row.disambiguation_accuracy, 16)} {_percent(row.mean_confidence, 11)}{covering} {row.seconds:8.1f}"
    )


def _percent(value: float | None, width: int = 0) -> str:
    return ("–" if value is None else f"{value:.2%}").rjust(width)


def conclude(console: Console, summary: Summary, folder: Path, *, already: bool) -> None:
    """Say what came out, where it is, and what to do next."""
    console.print()
    if already:
        console.print("This run is already complete; nothing was trained.")
    if summary.test_accuracy is not None:
        console.print(
            f"Test accuracy {_percent(summary.test_accuracy)} ({_which_epoch(summary)}; best of all epochs, chosen on "
            f"the test images: {_percent(summary.test_accuracy_best)})",
            style="bold",
            soft_wrap=True,
        )
    elif summary.select != "last":
        console.print(f"The model is that of {_which_epoch(summary)}", style="bold")
    if summary.calibration_error is not None:
        console.print(_calibration(summary))
    if summary.ambiguous_images is not None and summary.ambiguous_resolved is not None:
        console.print(
            f"Of {summary.ambiguous_images:,} training images with several possible labels, "
            f"{summary.ambiguous_resolved:,} were resolved to the true one "
            f"({summary.ambiguous_resolved / max(1, summary.ambiguous_images):.2%})"
        )
    speed = "" if summary.images_per_second is None else f" at {summary.images_per_second:,.0f} images/s"
    console.print(f"Trained in {summary.seconds:.0f} s{speed}")
    console.print(f"Everything is in {folder}: model.safetensors, metrics.jsonl, summary.json")
    _next_steps(console, folder, tested=summary.test_accuracy is not None)


def _next_steps(console: Console, folder: Path, *, tested: bool) -> None:
    name = shlex.quote(str(folder))
    use = f"import papi; print(papi.load({json.dumps(str(folder))}).class_names)"
    console.print("Next:")
    console.print(f"  papi report {name} --open", soft_wrap=True)
    console.print(f"  papi labels {name}", soft_wrap=True)
    if tested:
        console.print(f"  papi evaluate {name}", soft_wrap=True)
    console.print(f"  python -c {shlex.quote(use)}", soft_wrap=True)


def _which_epoch(summary: Summary) -> str:
    """Return the epoch of the model, and why that one."""
    if summary.select == "last" or summary.picked_epoch is None:
        return "last epoch"
    by_rule = {"covering-rate": summary.covering_rate, "approximated-accuracy": summary.approximated_accuracy}
    last = "" if summary.test_accuracy_last is None else f"; last epoch: {_percent(summary.test_accuracy_last)}"
    rule, value = summary.select.replace("-", " "), _percent(by_rule[summary.select])
    return f"epoch {summary.picked_epoch + 1}, picked by its {rule} of {value}{last}"


def _calibration(summary: Summary) -> str:
    """Return how far the model's confidence is from how often it is right."""
    told = f"Calibration error {_percent(summary.calibration_error)}"
    if summary.temperature == 1:
        return told
    return f"{told} at temperature {summary.temperature:.3f} (without it {_percent(summary.uncalibrated_error)})"
