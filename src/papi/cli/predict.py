"""`papi predict`: what a trained model says about new images, as a table, written while they are read."""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import papi
from papi.cli.options import SWITCH, WHOLE, OutsideMethod, OutsideNetwork
from papi.cli.terminal import make_console, printable
from papi.data.own.folders import image_files, skipped_files
from papi.data.own.incoming import Part, count_samples, read_parts
from papi.errors import UserError
from papi.files.durable import output_file
from papi.files.spreadsheets import cell
from papi.runs.folder import RunFolder

MOST_ROWS = 256  # that are read and answered at a time; of large images, fewer
PROBLEMS = 20  # shown; the rest is counted
SKIPPED = 5  # files that are no images, in a line

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
    method: OutsideMethod = None,
    network: OutsideNetwork = None,
) -> None:
    """Classify new images.

    Parameters
    ----------
    run
        Folder of a run, or its model.safetensors. If the run has not finished, its last checkpoint is used.
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
    from papi.data.images.lanes import in_lanes  # loads torch: `papi predict --help` does without
    from papi.data.loader import rows_at_once  # as above
    from papi.setup.stopped import model_of  # as above

    console = make_console(stderr=True)
    model, note = model_of(run, device, method, network)
    if note is not None:
        console.print(f"Note: {note}", soft_wrap=True)
    problems: list[str] = []
    paths = (first, *more)
    kind = kind or ("jsonl" if out and out.suffix == ".jsonl" else "csv")
    with _output(out, _inputs(out, run, paths)) as stream, _bar(console) as bar:
        write = _Writer(stream, _naming(kind, raw, terminal=out is None), model.class_names, top, kind == "jsonl")
        task = bar.add_task("predicting", total=count_samples(paths, model.shape) if console.is_terminal else None)
        size = rows_at_once(math.prod(model.shape), MOST_ROWS)
        parts = read_parts(paths, model.shape, size, problems.append, model.preparation)
        for part, probabilities in in_lanes(partial(_answer, model, read) for read in parts):
            problems.extend(part.problems)
            write(part, probabilities)
            bar.update(task, completed=write.rows)
        if not write.rows:
            raise UserError(_nothing(problems, paths))
    _tell_skipped(console, paths)
    _conclude(console, write.rows, problems, out)


def _answer(model: "papi.Model", read: Callable[[], Part]) -> tuple[Part, np.ndarray]:
    """Read a part and let the model answer, in one thread."""
    part = read()
    return part, model.probabilities(part.samples) if len(part.samples) else np.empty((0, len(model.class_names)))


class _Writer:
    """Writes a row for each sample: csv with a column for each of the likeliest labels, or one JSON object a line."""

    def __init__(self, stream: IO[str], naming: Name, names: tuple[str, ...], top: int, as_json: bool) -> None:
        self.stream, self.naming, self.names, self.top = stream, naming, names, min(top, len(names))
        self.json = as_json
        self.csv = csv.writer(stream, lineterminator="\n")
        self.rows = 0  # written so far

    def __call__(self, part: Part, probabilities: np.ndarray) -> None:
        if not len(part.samples):
            return
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


def _tell_skipped(console: Console, paths: tuple[Path, ...]) -> None:
    """Say which files of the folders are no images."""
    skipped = [file for path in paths if path.is_dir() for file in skipped_files(path)]
    if not skipped:
        return
    listed = ", ".join(printable(str(file)) for file in skipped[:SKIPPED])
    more = f" and {len(skipped) - SKIPPED:,} more" if len(skipped) > SKIPPED else ""
    heic = any(file.suffix.lower() in (".heic", ".heif") for file in skipped)
    hint = "; HEIC photos can be read after `pip install pillow-heif`" if heic else ""
    console.print(f"Note: skipped, as they are no images: {listed}{more}{hint}", soft_wrap=True)


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
