"""What training says: what it is about to do, a row for each epoch, and the result with what to do next."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from papi import train as run
from papi.cli.terminal import counted, printable
from papi.config import Settings
from papi.methods.config import Passes
from papi.runs.schema import EpochRow, Summary

_LISTED = 10  # classes in a warning


@dataclass(frozen=True)
class Column:
    """A measurement of each epoch, as wide as its title."""

    title: str
    value: Callable[[EpochRow], float | None]


def columns_of(started: run.Started) -> tuple[Column, ...]:
    """Return what can be measured on the data of this run."""
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
    """Say what is about to be trained on what data."""
    settings, dataset, sets = started.settings, started.dataset, started.statistics
    what = noun(dataset.kind)
    processes = f"{started.processes} x " if started.processes > 1 else ""
    for problem in started.problems:
        console.print(f"Note: {printable(problem)}", soft_wrap=True)
    console.print(
        f"{settings.method} ({cost(started)}) on {printable(dataset.name)}: "
        f"{counted(len(dataset.samples), what)}, {len(dataset.class_names)} classes, "
        f"{sets['mean_candidates']:.2f} candidate labels {'an' if what == 'image' else 'a'} {what} "
        f"({sets['singletons']:.1%} have one, {sets['full_sets']:.1%} have all)"
    )
    console.print(
        f"network {_network(settings)} ({started.parameters:,} parameters), preset {settings.preset}: "
        f"{counted(settings.epochs, 'epoch')} of {counted(started.steps, 'step')} on "
        f"{processes}{started.device} ({counted(started.threads, 'thread')}), in {folder}"
    )
    if started.epoch or started.step:
        console.print(f"continuing in epoch {started.epoch + 1} after step {started.step}")
    titles = "".join(f"  {column.title}" for column in columns_of(started))
    console.print(f"epoch    loss{titles}  seconds", style="bold", soft_wrap=True)


def noun(kind: str | None) -> str:
    """Return what one sample is called: an image, or a row of a feature table."""
    return "row" if kind == "features" else "image"


def cost(started: run.Started) -> str:
    """Return what a step of the method costs: `passes=two: 2 forward and 2 backward passes a step`."""
    chosen = started.settings.options.get("passes")  # of a method that has several forms
    form = f"passes={chosen}: " if chosen else ""
    warmup, own = started.passes.warmup, _count(started.passes)
    return f"{form}{own} a step" if warmup is None else f"{form}{_count(warmup)} a step, {own} after the warm-up"


def _count(passes: Passes) -> str:
    return f"{passes.forward} forward and {passes.backward} backward pass{'' if passes.backward == 1 else 'es'}"


def epoch_row(row: EpochRow, columns: tuple[Column, ...]) -> str:
    """Return the row of an epoch, below the titles that `announce` has printed."""
    cells = "".join(f"  {_percent(column.value(row), len(column.title))}" for column in columns)
    return f"{row.epoch + 1:5d} {row.loss:7.3f}{cells} {row.seconds:8.1f}"


def _percent(value: float | None, width: int = 0) -> str:
    return ("–" if value is None else f"{value:.2%}").rjust(width)


def conclude(console: Console, summary: Summary, folder: Path, *, already: bool, then_labels: bool = False) -> None:
    """Say what came out, where it is, and what to do next."""
    console.print()
    what = noun(summary.kind)
    if already:
        console.print("This run is already complete; nothing was trained.")
    if summary.trained_epochs is not None and summary.trained_epochs < summary.epochs:
        console.print(_ended_early(summary, folder, already), soft_wrap=True)
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
            f"Of {counted(summary.ambiguous_images, f'training {what}')} with several possible labels, "
            f"{summary.ambiguous_resolved:,} were resolved to the true one "
            f"({summary.ambiguous_resolved / max(1, summary.ambiguous_images):.2%})"
        )
    for sentence in (*_classes(summary, what), *_prototypes(summary)):
        console.print(sentence, soft_wrap=True)
    speed = "" if summary.images_per_second is None else f" at {summary.images_per_second:,.0f} {what}s/s"
    console.print(f"Trained in {summary.seconds:.0f} s{speed}")
    console.print(f"Everything is in {folder}: model.safetensors, metrics.jsonl, summary.json")
    _next_steps(console, folder, tested=summary.test_accuracy is not None, labels=not then_labels)


def _ended_early(summary: Summary, folder: Path, already: bool) -> str:
    """Return after how many epochs a run ended, and how to train the rest."""
    told = f"It ended after {summary.trained_epochs:.4g} of {counted(summary.epochs, 'epoch')}."
    return (
        f"{told} To train the rest, delete {folder / 'summary.json'} and give the command again." if already else told
    )


def _classes(summary: Summary, what: str) -> list[str]:
    """Return to which classes the images were resolved, and a warning about those that got none."""
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
            f"Warning: no {what} was resolved to {', '.join(gone[:_LISTED])}{rest}, though {what}s have "
            f"{'it' if len(gone) == 1 else 'them'} as a candidate: the model does not know "
            f"{'this class' if len(gone) == 1 else 'these classes'}. Add {what}s of which it is the only candidate."
        )
    return sentences


def _prototypes(summary: Summary) -> list[str]:
    """Return a warning about classes that the prototypes cannot tell apart."""
    lost = [printable(name) for name in summary.collapsed_prototypes]
    if not lost:
        return []
    rest = f" and {len(lost) - _LISTED:,} more" if len(lost) > _LISTED else ""
    return [
        f"Warning: the prototypes of {', '.join(lost[:_LISTED])}{rest} are zero or the same as another's, so the "
        "alignment of PaPi worked with nothing there. Train longer, or without it: --option alignment=off."
    ]


def _next_steps(console: Console, folder: Path, *, tested: bool, labels: bool) -> None:
    name = shlex.quote(str(folder))
    use = f"import papi; print(papi.load({json.dumps(str(folder))}).class_names)"
    console.print("Next:")
    console.print(f"  papi report {name} --open", soft_wrap=True)
    if labels:
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


def _network(settings: Settings) -> str:
    """Return what is trained, and what photos pass before it."""
    if settings.tune is None:
        return settings.network
    return (
        f"{settings.network}, all of it" if settings.tune == "all" else f"{settings.head} on {settings.network}, frozen"
    )
