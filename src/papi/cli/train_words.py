"""Text that `papi train` prints: a summary at the start, a row per epoch, and the result with the next steps."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from papi import train as run
from papi.cli.terminal import counted, printable
from papi.config import Settings
from papi.files.outside import LIBRARIES
from papi.methods.config import Passes
from papi.runs.schema import EpochRow, Summary

_LISTED = 10  # classes listed in a warning


@dataclass(frozen=True)
class Column:
    """A metric of each epoch, printed as wide as its title."""

    title: str
    value: Callable[[EpochRow], float | None]


def columns_of(started: run.Started) -> tuple[Column, ...]:
    """Return the metrics that can be computed on the data of this run."""
    dataset = started.dataset
    columns = []
    if dataset.test_labels is not None:
        columns += [
            Column("test accuracy", lambda row: row.test_accuracy),
            Column("prototypes", lambda row: row.prototype_accuracy),
        ]
    if dataset.labels is not None:
        columns.append(Column("resolved labels", lambda row: row.disambiguation_accuracy))
    columns.append(Column("confidence", lambda row: row.mean_confidence))
    if started.settings.data_holdout:
        columns.append(Column("covering rate", lambda row: row.covering_rate))
    return tuple(columns)


def announce(console: Console, started: run.Started, folder: Path) -> None:
    """Print the method, the data and the network of the run."""
    settings, dataset, sets = started.settings, started.dataset, started.statistics
    what = noun(dataset.kind if dataset.photos is None else "images")
    processes = f"{started.processes} x " if started.processes > 1 else ""
    for problem in started.problems:
        console.print(f"Note: {printable(problem)}", soft_wrap=True)
    console.print(
        f"{settings.method} ({cost(started)}) on {printable(dataset.name)}: "
        f"{counted(len(dataset.samples), what)}, {len(dataset.class_names)} classes, "
        f"{sets['mean_candidates']:.2f} candidate labels per {what} "
        f"({sets['singletons']:.1%} have only one, {sets['full_sets']:.1%} have all)"
    )
    console.print(
        f"network {_network(settings)} ({started.parameters:,} parameters) in {settings.precision}, "
        f"preset {settings.preset}: {counted(settings.epochs, 'epoch')} of {counted(started.steps, 'step')} on "
        f"{processes}{started.device} ({counted(started.threads, 'thread')}), in {folder}"
    )
    if started.epoch or started.step:
        console.print(f"continuing in epoch {started.epoch + 1} after step {started.step}")
    titles = "".join(f"  {column.title}" for column in columns_of(started))
    console.print(f"epoch    loss{titles}  seconds", style="bold", soft_wrap=True)


def noun(kind: str | None) -> str:
    """Return the word for one sample: an image, or a row of a feature table."""
    return "row" if kind == "features" else "image"


def cost(started: run.Started) -> str:
    """Return the cost of a training step: `passes=two: 2 forward and 2 backward passes per step`."""
    chosen = started.settings.options.get("passes")  # only methods with several variants have this setting
    form = f"passes={chosen}: " if chosen else ""
    warmup, own = started.passes.warmup, _count(started.passes)
    return f"{form}{own} per step" if warmup is None else f"{form}{_count(warmup)} per step, {own} after the warm-up"


def _count(passes: Passes) -> str:
    return f"{passes.forward} forward and {passes.backward} backward pass{'' if passes.backward == 1 else 'es'}"


def epoch_row(row: EpochRow, columns: tuple[Column, ...]) -> str:
    """Return the row of an epoch, aligned with the column titles that `announce` prints."""
    cells = "".join(f"  {_percent(column.value(row), len(column.title))}" for column in columns)
    return f"{row.epoch + 1:5d} {row.loss:7.3f}{cells} {row.seconds:8.1f}"


def _percent(value: float | None, width: int = 0) -> str:
    return ("–" if value is None else f"{value:.2%}").rjust(width)


def conclude(
    console: Console,
    summary: Summary,
    folder: Path,
    *,
    already: bool,
    then_labels: bool = False,
    network: str | None = None,
) -> None:
    """Print the result, the folder of the run and the next steps."""
    console.print()
    what = noun(summary.kind)
    if already:
        console.print("This run is already complete; nothing was trained.")
    if summary.trained_epochs is not None and summary.trained_epochs < summary.epochs:
        console.print(_ended_early(summary, folder, already), soft_wrap=True)
    if summary.test_accuracy is not None:
        console.print(
            f"Test accuracy {_percent(summary.test_accuracy)} ({_which_epoch(summary)}; best epoch on the test images: "
            f"{_percent(summary.test_accuracy_best)})",
            style="bold",
            soft_wrap=True,
        )
    elif summary.select != "last":
        console.print(f"Saved the model of {_which_epoch(summary)}", style="bold")
    if summary.calibration_error is not None:
        console.print(_calibration(summary))
    if summary.ambiguous_images is not None and summary.ambiguous_resolved is not None:
        console.print(
            f"Of {counted(summary.ambiguous_images, f'training {what}')} with several candidate labels, "
            f"{summary.ambiguous_resolved:,} were resolved to the true label "
            f"({summary.ambiguous_resolved / max(1, summary.ambiguous_images):.2%})"
        )
    for sentence in (*_classes(summary, what), *_prototypes(summary)):
        console.print(sentence, soft_wrap=True)
    speed = "" if summary.images_per_second is None else f" at {summary.images_per_second:,.0f} {what}s/s"
    console.print(f"Trained in {summary.seconds:.0f} s{speed}")
    console.print(f"Results are in {folder}: model.safetensors, metrics.jsonl, summary.json")
    outside = network if network is not None and ":" in network and not network.startswith(LIBRARIES) else None
    _next_steps(console, folder, outside, tested=summary.test_accuracy is not None, labels=not then_labels)


def _ended_early(summary: Summary, folder: Path, already: bool) -> str:
    """Return after how many epochs a run ended, and how to train the remaining ones."""
    told = f"Training ended after {summary.trained_epochs:.4g} of {counted(summary.epochs, 'epoch')}."
    return (
        f"{told} To train the remaining epochs, delete {folder / 'summary.json'} and run the command again."
        if already
        else told
    )


def _classes(summary: Summary, what: str) -> list[str]:
    """Return the number of images resolved to each class, and a warning about classes without any."""
    counts = summary.resolved_by_class or {}
    if not counts:
        return []
    listed = ", ".join(f"{printable(name)} {count:,}" for name, count in list(counts.items())[:_LISTED])
    more = f" and {len(counts) - _LISTED:,} more classes" if len(counts) > _LISTED else ""
    sentences = [f"Resolved {what}s by class: {listed}{more}"]
    gone = [printable(name) for name, count in counts.items() if count == 0]
    if gone:
        rest = f" and {len(gone) - _LISTED:,} more" if len(gone) > _LISTED else ""
        sentences.append(
            f"Warning: no {what} was resolved to {', '.join(gone[:_LISTED])}{rest}, although some {what}s have "
            f"{'it' if len(gone) == 1 else 'them'} as a candidate. The model has not learned "
            f"{'this class' if len(gone) == 1 else 'these classes'}: train for more epochs, or add {what}s that have "
            f"{'it' if len(gone) == 1 else 'one of them'} as the only candidate."
        )
    return sentences


def _prototypes(summary: Summary) -> list[str]:
    """Return a warning about classes that the prototypes cannot tell apart."""
    lost = [printable(name) for name in summary.collapsed_prototypes]
    if not lost:
        return []
    rest = f" and {len(lost) - _LISTED:,} more" if len(lost) > _LISTED else ""
    return [
        f"Warning: the prototypes of {', '.join(lost[:_LISTED])}{rest} are zero or identical to another class's, so "
        "prototype alignment had no effect there. Train longer, or turn it off with --option alignment=off."
    ]


def _next_steps(console: Console, folder: Path, network: str | None, *, tested: bool, labels: bool) -> None:
    """Print the next commands, with the name of a `network` from outside the package where its code is needed."""
    name = shlex.quote(str(folder))
    option = "" if network is None else f" --network {shlex.quote(network)}"
    argument = "" if network is None else f", network={json.dumps(network)}"
    use = f"import papi; print(papi.load({json.dumps(str(folder))}{argument}).class_names)"
    console.print("Next:")
    console.print(f"  papi report {name} --open", soft_wrap=True)
    if labels:
        console.print(f"  papi labels {name}", soft_wrap=True)
    if tested:
        console.print(f"  papi evaluate {name}{option}", soft_wrap=True)
    console.print(f"  python -c {shlex.quote(use)}", soft_wrap=True)


def _which_epoch(summary: Summary) -> str:
    """Return the epoch of the saved model and how it was selected."""
    if summary.select == "last" or summary.picked_epoch is None:
        return "last epoch"
    by_rule = {"covering-rate": summary.covering_rate, "approximated-accuracy": summary.approximated_accuracy}
    last = "" if summary.test_accuracy_last is None else f"; last epoch: {_percent(summary.test_accuracy_last)}"
    rule, value = summary.select.replace("-", " "), _percent(by_rule[summary.select])
    return f"epoch {summary.picked_epoch + 1}, selected by its {rule} of {value}{last}"


def _calibration(summary: Summary) -> str:
    """Return the difference between the model's confidence and its accuracy."""
    told = f"Calibration error {_percent(summary.calibration_error)}"
    if summary.temperature == 1:
        return told
    return f"{told} at temperature {summary.temperature:.3f} ({_percent(summary.uncalibrated_error)} without it)"


def _network(settings: Settings) -> str:
    """Return the trained network, with its frozen encoder if there is one."""
    if settings.tune is None:
        return settings.network
    return (
        f"{settings.network}, fine-tuned" if settings.tune == "all" else f"{settings.head} on frozen {settings.network}"
    )
