"""`papi check`: read the training data without training, and report statistics and problems."""

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
from papi.cli.options_file import tell_options
from papi.cli.terminal import counted, make_console, printable
from papi.config import CandidatesConfig, RunConfig
from papi.data.candidates import covering_pairs, frequent_pairs, require_useful, stand_ins, statistics
from papi.data.dataset import Dataset
from papi.data.own.agreement import annotators, disagreements
from papi.errors import UserError
from papi.setup.data import load_dataset

PAIRS = 10
PEOPLE = 10  # annotators in a table
GROUPS = 10  # groups shown per level of the class hierarchy
PROBLEMS = 20  # shown; the rest are counted
CLASSES = 1_000  # rows in the table of classes
COUNTED = 20_000  # samples used to find labels that stand in for others
_CANDIDATES = CandidatesConfig()


@config_options(experts=True)
def check(
    data: str | None = None,
    /,
    *,
    candidates: CandidatesConfig = _CANDIDATES,
    data_dir: Annotated[Path, DATA] = Path("data"),
    size: Annotated[int | None, DATA, WHOLE, Parameter(name="--data.size")] = None,
    tree: Annotated[Path | None, DATA, Parameter(name="--classes.tree")] = None,
    image_column: Annotated[str | None, DATA, Parameter(name="--data.image-column")] = None,
) -> None:
    """Check data and candidate labels without training; report every problem with its file and line.

    Parameters
    ----------
    data
        Folder of images, data file, or name of a known dataset. [default: the data in this folder's papi.toml]
    data_dir
        Folder where known datasets are stored.
    size
        Resize images to this height and width in pixels. [default: their own size if it is small and the same for all,
        otherwise 64]
    tree
        Class hierarchy: a csv file with the columns label and parent, or nested json.
    image_column
        Name of the image column in parquet files and Hugging Face datasets. [default: image, or the first column with
        images]
    """
    if data is None:
        raise UserError("no data to check: specify a folder of images, a file, or the name of a known dataset.")
    console = make_console()
    tell_options(console)
    config = RunConfig(
        data=data,
        candidates=candidates,
        data_dir=data_dir,
        data_size=size,
        data_image_column=image_column,
        data_test_share=0,
        classes_tree=tree,
    )
    problems = _Problems()
    dataset = _read(config, console, problems)
    if dataset is not None:
        describe(console, dataset)
        describe_annotators(console, dataset)
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
    """Counts problems and keeps only the first ones, because a table can have a million."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def __call__(self, problem: str) -> None:
        self.count += 1
        if self.count <= PROBLEMS:
            self.first.append(problem)


def _read(config: RunConfig, console: Console, problems: _Problems) -> Dataset | None:
    """Read the data and collect problems; return None if the data cannot be read at all."""
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
    """Return the options of `papi train` for the checked data and candidate labels."""
    default = RunConfig()
    words = ["--data", config.data]
    for name in ("data_dir", "data_size", "data_image_column", "classes_tree"):
        if getattr(config, name) != getattr(default, name):
            words += [option_name(name), str(getattr(config, name))]
    for field in dataclasses.fields(config.candidates):
        value = getattr(config.candidates, field.name)
        if value != getattr(default.candidates, field.name):
            option = option_name(f"candidates.{field.name}")
            words += [option] if value is True else [option, str(value)]
    return words


def describe(console: Console, dataset: Dataset) -> None:
    """Print the samples, the classes, the sizes of the candidate sets, and labels that occur together."""
    tests = "" if dataset.test_samples is None else f" and {len(dataset.test_samples):,} for testing"
    classes = "1 class" if len(dataset.class_names) == 1 else f"{len(dataset.class_names):,} classes"
    shape = " x ".join(str(size) for size in dataset.input_shape)
    console.print(
        f"{printable(dataset.name)}: {len(dataset.samples):,} {dataset.kind} of {shape} for training{tests}, "
        f"{classes}, {'with' if dataset.labels is not None else 'without'} true labels",
        soft_wrap=True,
    )
    for note in dataset.notes:
        console.print(f"Note: {printable(note)}", soft_wrap=True)
    for number, level in enumerate(dataset.levels, 1):
        groups = Counter(level)
        shown = ", ".join(f"{printable(name)} ({count})" for name, count in list(groups.items())[:GROUPS])
        more = f" and {len(groups) - GROUPS:,} more" if len(groups) > GROUPS else ""
        console.print(f"Level {number} of the hierarchy has {len(groups):,} groups: {shown}{more}", soft_wrap=True)
    if dataset.candidates is None:
        console.print("There are no candidate labels; `papi train` synthesizes them from the true labels.")
        return
    found = statistics(dataset.candidates, dataset.labels)
    console.print(
        f"{found['mean_candidates']:.2f} candidate labels per sample; {found['singletons']:.1%} have only one, "
        f"{found['full_sets']:.1%} have all"
    )
    if "true_label_present" in found:
        console.print(f"{found['true_label_present']:.2%} of the candidate sets contain the true label")
    console.print(_sizes(dataset.candidates))
    console.print(_classes(dataset, dataset.candidates))
    _print_filled(console, _pairs(dataset, dataset.candidates))
    if len(dataset.class_names) <= CLASSES:
        _print_filled(console, _stand_ins(dataset, dataset.candidates))


def describe_annotators(console: Console, dataset: Dataset) -> None:
    """Print the estimated accuracy of each annotator, and which annotators disagree."""
    if dataset.opinions is None or len(dataset.opinions.annotators) < 2:
        return
    people = annotators(dataset.opinions, dataset.class_names)
    table = Table(
        "annotator",
        "images",
        "accuracy",
        "most frequent confusion",
        title="Annotators",
        caption="Estimated from the answers alone, without true labels",
    )
    for each in people[:PEOPLE]:
        habit = "–" if each.habit is None else f"{each.habit[1]} instead of {each.habit[0]} ({each.habit[2]:.0%})"
        right = "–" if each.accuracy is None else f"{each.accuracy:.1%}"
        table.add_row(Text(printable(each.name)), f"{each.images:,}", right, Text(printable(habit)))
    if len(people) > PEOPLE:
        table.title = f"The {PEOPLE} least accurate of {len(people):,} annotators"
    console.print(table)
    pairs = disagreements(dataset.opinions, len(dataset.class_names))
    if pairs:
        table = Table("annotator", "other annotator", "common images", "disagreement", title="Disagreement")
        for pair in pairs[:PAIRS]:
            names = Text(printable(pair.first)), Text(printable(pair.second))
            table.add_row(*names, f"{pair.common:,}", f"{pair.share:.1%}")
        console.print(table)


def _print_filled(console: Console, table: Table) -> None:
    """Print a table unless it has no rows."""
    if table.row_count:
        console.print(table)


def _pairs(dataset: Dataset, candidates: np.ndarray) -> Table:
    table = Table("label", "other label", "together in", title="Labels that most often occur together")
    for first, second, count in frequent_pairs(candidates, dataset.class_names, PAIRS):
        table.add_row(Text(printable(first)), Text(printable(second)), counted(count, "set"))
    return table


def _stand_ins(dataset: Dataset, candidates: np.ndarray) -> Table:
    """Return labels that are candidates of a class's samples more often than the other way round."""
    some = slice(None, None, 1 + len(candidates) // COUNTED)
    candidates = candidates[some]
    if dataset.labels is None:
        shares, caption = (
            candidates / candidates.sum(1, keepdims=True),
            "Without true labels, each candidate of a sample counts equally.",
        )
    else:
        shares, caption = np.eye(candidates.shape[1])[dataset.labels[some]], "Based on the true labels."
    title = "Labels that often accompany another class"
    table = Table("class", "other label", "has it too", "the reverse", title=title, caption=caption)
    for name, label, share, back in covering_pairs(stand_ins(candidates, shares), dataset.class_names, PAIRS):
        table.add_row(Text(printable(name)), Text(printable(label)), f"{share:.0%}", f"{back:.0%}")
    return table


def _sizes(candidates: np.ndarray) -> Table:
    table = Table("candidates", "samples", title="Sizes of the candidate sets")
    counts = Counter(candidates.sum(1).tolist())
    for size, count in sorted(counts.items()):
        table.add_row(str(size), f"{count:,}")
    return table


def _classes(dataset: Dataset, candidates: np.ndarray) -> Table:
    table = Table("class", "candidate of", "only candidate of", "true label of", title="Samples per class")
    if len(dataset.class_names) > CLASSES:
        table.caption = f"The first {CLASSES:,} of {len(dataset.class_names):,} classes"
    alone = candidates[candidates.sum(1) == 1].sum(0)
    for k, name in enumerate(dataset.class_names[:CLASSES]):
        true = "–" if dataset.labels is None else f"{int((dataset.labels == k).sum()):,}"
        table.add_row(Text(printable(name)), f"{int(candidates[:, k].sum()):,}", f"{int(alone[k]):,}", true)
    return table


def _find_useless(dataset: Dataset, problems: _Problems) -> None:
    """Add a problem if no classifier can be learned from the candidate sets."""
    if dataset.candidates is None:
        if len(dataset.class_names) < 2:
            problems(f"{dataset.name} has only one class: a classifier needs two or more. Is a table missing?")
        return
    try:
        require_useful(dataset.candidates, dataset.name)
    except UserError as error:
        problems(str(error))


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
