"""`papi predict`: what a trained model says about new images, as a table, written while they are read."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import papi
from papi.cli.options import WHOLE, OutsideNetwork
from papi.cli.terminal import make_console, printable
from papi.data.own.incoming import Part, count_samples, read_parts
from papi.errors import UserError
from papi.files.durable import output_file

BATCH = 256


def predict(
    run: Path,
    first: Path,
    /,
    *more: Path,
    out: Path | None = None,
    kind: Annotated[Literal["csv", "jsonl"] | None, Parameter(name="--format", show_default=False)] = None,
    top: Annotated[int, WHOLE, Parameter(name="--top-k")] = 3,
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
    with _output(out) as stream, _bar(console) as bar:
        write = _Writer(stream, kind or ("jsonl" if out and out.suffix == ".jsonl" else "csv"), model.class_names, top)
        task = bar.add_task("predicting", total=count_samples(paths, model.card.shape) if console.is_terminal else None)
        for part in read_parts(paths, model.card.shape, BATCH, problems.append):
            write(part, model)
            bar.update(task, completed=write.rows)
        if not write.rows:
            raise UserError(_nothing(problems, paths))
    _conclude(console, write.rows, problems, out)


class _Writer:
    """Writes a row for each sample: csv with a column for each of the likeliest labels, or one JSON object a line."""

    def __init__(self, stream: IO[str], kind: str, names: tuple[str, ...], top: int) -> None:
        self.stream, self.names, self.top = stream, names, min(top, len(names))
        self.json = kind == "jsonl"
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
                json.dumps(_record(*each), ensure_ascii=False) + "\n"
                for each in zip(part.files, rows, labels, values, strict=True)
            )
            return
        self.csv.writerows(
            [file, row, *(cell for pair in zip(own, map("{:.6f}".format, shares), strict=True) for cell in pair)]
            for file, row, own, shares in zip(part.files, rows, labels, values, strict=True)
        )


def _record(file: str, row: object, labels: list[str], values: list[float]) -> dict[str, object]:
    top = [{"label": label, "probability": round(value, 6)} for label, value in zip(labels, values, strict=True)]
    return {"file": file, **({} if row == "" else {"row": row}), **top[0], "top": top}


@contextmanager
def _output(out: Path | None) -> Iterator[IO[str]]:
    """Give the terminal, or a file that appears when it is complete."""
    if out is None:
        yield sys.stdout
        return
    with output_file(out) as half, half.open("w", encoding="utf-8", newline="") as stream:
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
        for problem in problems:
            console.print(f"  {printable(problem)}", soft_wrap=True)
    where = f" are in {out}" if out else ""
    console.print(f"{done:,} predictions{where}", soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
