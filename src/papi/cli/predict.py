"""`papi predict`: what a trained model says about new images, as a table, written while they are read."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import papi
from papi.cli.options import SWITCH, WHOLE, OutsideNetwork
from papi.cli.terminal import make_console, printable
from papi.data.own.folders import image_files
from papi.data.own.incoming import Part, count_samples, read_parts
from papi.errors import UserError
from papi.files.durable import output_file
from papi.files.spreadsheets import cell
from papi.runs.folder import RunFolder

BATCH = 256
PROBLEMS = 20  # shown; the rest is counted

Name = Callable[[str], str]  # how the name of a file or a class is written


def predict(
    run: Path,
    first: Path,
    /,
    *more: Path,
    out: Path | None = None,
    kind: Annotated[Literal["csv", "jsonl"] | None, Parameter(name="--format", show_default=False)] = None,
    top: Annotated[int, WHOLE, Parameter(name="--top-k")] = 3,
    raw: Annotated[bool, SWITCH] = False,
    device: str = "auto",
    network: OutsideNetwork = None,
) -> None:
    """Classify new images.

    Parameters
    ----------
    run
        Folder of a finished run, or its model.safetensors.
    first
        An image, a folder of images, or an array: .npy, or .npz with `images`. For runs on features: an array, .npz
        with `features`, or .csv.
    more
        More images, folders or arrays.
    out
        The file to write. [default: the terminal]
    kind
        csv or jsonl. [default: from the name of the file, else csv]
    top
        Number of labels for each image.
    raw
        Write names as they are into a csv file. Without it, names that a spreadsheet would compute begin with a single
        quote.
    device
        cpu, cuda, cuda:1 …; auto uses a GPU if there is one.
    """
    if top < 1:
        raise UserError(f"--top-k must be 1 or more; got {top}.")
    from papi.training.devices import find_device  # loads torch: `papi predict --help` does without

    model = papi.load(run, str(find_device(device)), network)
    problems: list[str] = []
    console = make_console(stderr=True)
    paths = (first, *more)
    kind = kind or ("jsonl" if out and out.suffix == ".jsonl" else "csv")
    with _output(out, _inputs(out, run, paths)) as stream, _bar(console) as bar:
        write = _Writer(stream, _naming(kind, raw, terminal=out is None), model.class_names, top, kind == "jsonl")
        task = bar.add_task("predicting", total=count_samples(paths, model.card.shape) if console.is_terminal else None)
        for part in read_parts(paths, model.card.shape, BATCH, problems.append):
            write(part, model)
            bar.update(task, completed=write.rows)
        if not write.rows:
            raise UserError(_nothing(problems, paths))
    _conclude(console, write.rows, problems, out)


class _Writer:
    """Writes a row for each sample: csv with a column for each of the likeliest labels, or one JSON object a line."""

    def __init__(self, stream: IO[str], naming: Name, names: tuple[str, ...], top: int, as_json: bool) -> None:
        self.stream, self.naming, self.names, self.top = stream, naming, names, min(top, len(names))
        self.json = as_json
        self.csv = csv.writer(stream, lineterminator="\n")
        self.rows = 0  # written so far

    def __call__(self, part: Part, model: "papi.Model") -> None:
        if not len(part.samples):
            return
        probabilities = model.probabilities(part.samples)
        order = (-probabilities).argsort(1, kind="stable")[:, : self.top]
        values = np.take_along_axis(probabilities, order, 1).tolist()
        labels = [[self.names[k] for k in row] for row in order.tolist()]
        rows = [""] * len(labels) if part.rows is None else part.rows
        if not self.json and not self.rows:  # not before: nothing is written if nothing can be predicted
            others = (f"{what}_{place}" for place in range(2, self.top + 1) for what in ("label", "probability"))
            self.csv.writerow(("file", "row", "label", "probability", *others))
        self.rows += len(labels)
        if self.json:
            self.stream.writelines(
                self.naming(json.dumps(_record(*each), ensure_ascii=False)) + "\n"
                for each in zip(part.files, rows, labels, values, strict=True)
            )
            return
        for file, row, own, shares in zip(part.files, rows, labels, values, strict=True):
            pairs = ((self.naming(label), f"{share:.6f}") for label, share in zip(own, shares, strict=True))
            self.csv.writerow([self.naming(file), row, *chain.from_iterable(pairs)])


def _record(file: str, row: object, labels: list[str], values: list[float]) -> dict[str, object]:
    top = [{"label": label, "probability": round(value, 6)} for label, value in zip(labels, values, strict=True)]
    return {"file": file, **({} if row == "" else {"row": row}), **top[0], "top": top}


def _naming(kind: str, raw: bool, terminal: bool) -> Name:
    """Return how names are written: into a file as they are, unless a spreadsheet would compute them.

    On the way to a terminal, nothing may steer it: csv has `?` instead, and JSON an escape that means the same.
    """
    if kind == "jsonl":
        return _escaped if terminal else str
    quoted: Name = str if raw else cell
    return (lambda name: quoted(printable(name))) if terminal else quoted


def _escaped(line: str) -> str:
    """Return a line of JSON whose texts mean the same and have no character that could steer a terminal."""
    if printable(line) == line:
        return line
    pairs = zip(line, printable(line), strict=True)
    return "".join(old if new == old else json.dumps(old)[1:-1] for old, new in pairs)


def _inputs(out: Path | None, run: Path, paths: tuple[Path, ...]) -> list[Path]:
    """Return the files that the output must not replace."""
    if out is None or not out.is_file():
        return []
    below = (file for path in paths if path.is_dir() for file in image_files(path))
    return [run, *RunFolder(run if run.is_dir() else run.parent).files, *paths, *below]


@contextmanager
def _output(out: Path | None, inputs: list[Path]) -> Iterator[IO[str]]:
    """Give the terminal, or a file that appears when it is complete."""
    if out is None:
        yield sys.stdout
        return
    with output_file(out, inputs=inputs) as half, half.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def _nothing(problems: list[str], paths: tuple[Path, ...]) -> str:
    """Return why there is no prediction."""
    if not problems:
        return f"there is no image in {', '.join(map(str, paths))}: give images, folders of images, or arrays."
    count = f" because of {len(problems):,} problems; the first" if len(problems) > 1 else ""
    return f"nothing could be predicted{count}: {problems[0]}"


def _conclude(console: Console, done: int, problems: list[str], out: Path | None) -> None:
    if problems:
        console.print(f"Warning: {len(problems):,} could not be read and were left out:", soft_wrap=True)
        for problem in problems[:PROBLEMS]:
            console.print(f"  {printable(problem)}", soft_wrap=True)
        if len(problems) > PROBLEMS:
            console.print(f"  … and {len(problems) - PROBLEMS:,} more", soft_wrap=True)
    where = f" are in {out}" if out else ""
    console.print(f"{done:,} predictions{where}", soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
