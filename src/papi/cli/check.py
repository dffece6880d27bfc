"""`papi check`: read everything one would train on, train nothing, and say what was found."""

import dataclasses
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from papi.cli.options import DATA, WHOLE, config_options, option_name
from papi.cli.terminal import make_console, printable
from papi.config import CandidatesConfig, RunConfig
from papi.data.candidates import frequent_pairs, require_useful, statistics
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.setup.data import load_dataset

PAIRS = 10
PROBLEMS = 20  # shown; the rest is counted
CLASSES = 1_000  # more rows than anybody reads
_CANDIDATES = CandidatesConfig()


@config_options(experts=True)
def check(
    data: str,
    /,
    *,
    candidates: CandidatesConfig = _CANDIDATES,
    data_dir: Annotated[Path, DATA] = Path("data"),
    size: Annotated[int | None, DATA, WHOLE, Parameter(name="--data.size")] = None,
) -> None:
    """Read data and candidate labels without training, and report every problem with its file and line.

    Parameters
    ----------
    data
        A folder of images, a file, or a dataset by name.
    data_dir
        Folder of the datasets.
    size
        Height and width of the images in pixels. [default: theirs if they share a small one, else 64]
    """
    console = make_console()
    config = RunConfig(data=data, candidates=candidates, data_dir=data_dir, data_size=size, data_test_share=0)
    problems = _Problems()
    dataset = _read(config, console, problems)
    if dataset is not None:
        describe(console, dataset)
        _find_useless(dataset, problems)
    for problem in problems.first:
        console.print(f"Problem: {printable(problem)}", soft_wrap=True)
    if problems.count:
        shown = f" The first {PROBLEMS} are shown." if problems.count > PROBLEMS else ""
        console.print(f"{problems.count:,} problem{'s' if problems.count > 1 else ''} found.{shown}", style="bold")
        sys.exit(2)
    console.print("No problems found.", style="bold")
    console.print(f"Next: papi train {shlex.join(_words(config))}", soft_wrap=True)


class _Problems:
    """Counts problems and keeps the first: a table can have a million."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def __call__(self, problem: str) -> None:
        self.count += 1
        if self.count <= PROBLEMS:
            self.first.append(problem)


def _read(config: RunConfig, console: Console, problems: _Problems) -> Dataset | None:
    """Read the data and collect problems; None if they cannot be read at all."""
    with _bar(console) as bar:
        task = bar.add_task("reading", total=None)

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        try:
            return load_dataset(config, problems, progress)
        except UserError as error:
            problems(str(error))
            return None


def _words(config: RunConfig) -> list[str]:
    """Return what to give `papi train` for the data and sets that were checked."""
    default = RunConfig()
    words = ["--data", config.data]
    for name in ("data_dir", "data_size"):
        if getattr(config, name) != getattr(default, name):
            words += [option_name(name), str(getattr(config, name))]
    for field in dataclasses.fields(config.candidates):
        value = getattr(config.candidates, field.name)
        if value != getattr(default.candidates, field.name):
            option = option_name(f"candidates.{field.name}")
            words += [option] if value is True else [option, str(value)]
    return words


def describe(console: Console, dataset: Dataset) -> None:
    """Show what is there: samples, classes, sizes of candidate sets, and labels that occur together."""
    tests = "" if dataset.test_samples is None else f" and {len(dataset.test_samples):,} for testing"
    shape = " x ".join(str(size) for size in dataset.input_shape)
    console.print(
        f"{printable(dataset.name)}: {len(dataset.samples):,} {dataset.kind} of {shape} for training{tests}, "
        f"{len(dataset.class_names)} classes, true labels {'given' if dataset.labels is not None else 'not given'}",
        soft_wrap=True,
    )
    for note in dataset.notes:
        console.print(f"Note: {printable(note)}", soft_wrap=True)
    if dataset.candidates is None:
        console.print("There are no candidate sets; `papi train` makes them from the true labels.")
        return
    found = statistics(dataset.candidates, dataset.labels)
    console.print(
        f"{found['mean_candidates']:.2f} candidate labels a sample; {found['singletons']:.1%} have one, "
        f"{found['full_sets']:.1%} have all"
    )
    if "true_label_present" in found:
        console.print(f"{found['true_label_present']:.2%} of the sets contain the true label")
    console.print(_sizes(dataset.candidates))
    console.print(_classes(dataset, dataset.candidates))
    pairs = Table("label", "and label", "together in", title="Labels that occur together most often")
    for first, second, count in frequent_pairs(dataset.candidates, dataset.class_names, PAIRS):
        pairs.add_row(Text(printable(first)), Text(printable(second)), f"{count:,} sets")
    console.print(pairs)


def _sizes(candidates: np.ndarray) -> Table:
    table = Table("candidates", "samples", title="Sizes of the candidate sets")
    counts = Counter(candidates.sum(1).tolist())
    for size, count in sorted(counts.items()):
        table.add_row(str(size), f"{count:,}")
    return table


def _classes(dataset: Dataset, candidates: np.ndarray) -> Table:
    table = Table("class", "number of sets", "only candidate in", "true label of", title="Classes")
    if len(dataset.class_names) > CLASSES:
        table.caption = f"The first {CLASSES:,} of {len(dataset.class_names):,} classes"
    alone = candidates[candidates.sum(1) == 1].sum(0)
    for k, name in enumerate(dataset.class_names[:CLASSES]):
        true = "–" if dataset.labels is None else f"{int((dataset.labels == k).sum()):,}"
        table.add_row(Text(printable(name)), f"{int(candidates[:, k].sum()):,}", f"{int(alone[k]):,}", true)
    return table


def _find_useless(dataset: Dataset, problems: _Problems) -> None:
    """Add a problem if nothing can be learned from the candidate sets."""
    if dataset.candidates is None:
        return
    try:
        require_useful(dataset.candidates, dataset.name)
    except UserError as error:
        problems(str(error))


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
