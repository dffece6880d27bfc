"""Training in the terminal: a progress bar, one row per epoch, then the result and the next steps."""

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
from papi.cli.terminal import make_console, process
from papi.cli.train_words import Column, announce, columns_of, conclude, epoch_row
from papi.config import RunConfig
from papi.training.engine import EpochEnded, Stepped

Begin = Callable[[Callable[[], bool], Callable[[str, int, int], None]], Iterator[run.Event]]
"""Starts training. Its two callbacks return whether to stop and receive the progress of the preparation."""


def show_training(config: RunConfig, folder: Path, *, tensorboard: bool, finish_now: bool = False) -> None:
    """Train a run and show its progress."""

    def begin(stop: Callable[[], bool], prepare: Callable[[str, int, int], None]) -> Iterator[run.Event]:
        return run.train(config, folder, stop, prepare, finish_now=finish_now)

    follow(folder, begin, tensorboard=tensorboard, network=config.network)


def show_training_on(
    parent: Path,
    decisions: Path,
    folder: Path,
    epochs: int | None,
    data_dir: Path | None,
    method: str | None,
    network: str | None,
) -> None:
    """Continue a finished run with a person's decisions and show its progress."""

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

    follow(folder, begin, then_labels=True, network=network)


def follow(
    folder: Path, begin: Begin, *, tensorboard: bool = False, then_labels: bool = False, network: str | None = None
) -> None:
    """Show the progress of training. If it is interrupted, print how to continue and end the process.

    With `then_labels`, the caller writes the labels of the run next, so the next steps leave that out. They include the
    `network` that the user has named if its code is from outside the package.
    """
    scalars: Scalars | None = None
    columns: tuple[Column, ...] = ()
    console = make_console()
    with lasting_output(), stop_signals() as received, progress_bar(console) as bar:
        task = bar.add_task("reading data", total=None)

        def prepare(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        for event in begin(lambda: bool(received), prepare):
            if isinstance(event, run.Started):
                columns = columns_of(event)
                announce(console, event, folder)
                scalars = Scalars(folder, event.epoch) if tensorboard and process() == 0 else None
                done = event.epoch * event.steps + event.step
                bar.update(task, total=event.settings.epochs * event.steps, completed=done)
            elif isinstance(event, Stepped):
                bar.update(task, advance=1, description=f"epoch {event.progress.epoch + 1}/{event.progress.epochs}")
            elif isinstance(event, EpochEnded):
                console.print(epoch_row(event.row, columns), soft_wrap=True)
                if scalars:
                    scalars.add(event.row)
            elif isinstance(event, run.Finished):
                bar.stop()
                already = event.trained is None
                conclude(console, event.summary, folder, already=already, then_labels=then_labels, network=network)
            elif isinstance(event, run.Stopped):
                bar.stop()
                console.print(f"Stopped in epoch {event.epoch + 1} after step {event.step}. All progress is saved.")
                if sys.argv[1:2] == ["train"] and (event.epoch or event.step):
                    console.print("Add --finish-now to the command to finish the run here and keep this model.")
                console.print("Continue with:")
                console.print(f"  {launcher()} {shlex.join(sys.argv[1:])}", soft_wrap=True)
                sys.exit(128 + (received[0] if received else signal.SIGTERM))  # another process may have received it


def launcher() -> str:
    """Return the start of this command line: `papi`, or `torchrun … -m papi`."""
    processes = os.environ.get("LOCAL_WORLD_SIZE")
    return f"torchrun --nproc-per-node {processes} -m papi" if processes else "papi"


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Catch the first SIGTERM or SIGINT so that the current step is saved; a second one ends the process at once.

    Under `torchrun` it takes a third one, because `torchrun` forwards a signal that every process has already received.
    """
    received: list[int] = []
    heard = 2 if "LOCAL_WORLD_SIZE" in os.environ else 1

    def remember(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) < heard:
            return
        for each in before:
            signal.signal(
                each, signal.SIG_DFL
            )  # the default action ends the process without the interpreter and a traceback

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def progress_bar(console: Console) -> Progress:
    """Return a progress bar that counts steps; it is hidden if the output is not a terminal."""
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
