"""`papi predict`: classify new images and write the predictions as a table, batch by batch."""

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
from papi.cli.terminal import counted, make_console, printable
from papi.data.own.folders import image_files, skipped_files
from papi.data.own.incoming import Part, count_samples, read_parts
from papi.errors import UserError
from papi.files.durable import output_file
from papi.files.spreadsheets import cell
from papi.runs.folder import RunFolder

MOST_ROWS = 256  # largest batch; large images use smaller batches
PROBLEMS = 20  # shown; the rest are counted
SKIPPED = 5  # skipped files listed in the note

Name = Callable[[str], str]  # formats the name of a file or a class


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
        Folder of a run, or its model.safetensors. For an unfinished run, the last checkpoint is used.
    first
        Image, folder of images, or array of images (.npy, or .npz with `images`). For a run on features: an array
        (.npy, or .npz with `features`) or a .csv file.
    more
        More images, folders or arrays.
    out
        Output file. [default: print to the terminal]
    kind
        Output format: csv or jsonl. [default: from the extension of the output file, otherwise csv]
    top
        Number of most likely labels to write for each image.
    raw
        Write names unchanged to a csv file. By default, a single quote is put before names that a spreadsheet would
        interpret as formulas.
    device
        Device to run on: cpu, cuda, cuda:1 …; auto uses a GPU if there is one.
    """
    if top < 1:
        raise UserError(f"--top-k must be 1 or more; got {top}.")
    from papi.data.images.lanes import in_lanes  # imports torch, which `papi predict --help` does not need
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
    """Read a batch and classify it, in one thread."""
    part = read()
    return part, model.probabilities(part.samples) if len(part.samples) else np.empty((0, len(model.class_names)))


class _Writer:
    """Writes one row per sample: csv with a column for each of the most likely labels, or one JSON object per line."""

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
        if not self.json and not self.rows:  # write the header only with the first prediction
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
    """Return the function that formats names: unchanged in files, except names that a spreadsheet would evaluate.

    On a terminal, control characters are replaced by `?` in csv and by an equivalent escape in JSON.
    """
    if kind == "jsonl":
        return _escaped if terminal else str
    quoted: Name = str if raw else cell
    return (lambda name: quoted(printable(name))) if terminal else quoted


def _escaped(line: str) -> str:
    """Return an equivalent line of JSON without characters that could control a terminal."""
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
    """Yield standard output, or a file that appears only when it is complete."""
    if out is None:
        yield sys.stdout
        return
    with output_file(out, inputs=inputs) as half, half.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def _nothing(problems: list[str], paths: tuple[Path, ...]) -> str:
    """Return why there is no prediction."""
    if not problems:
        return f"there are no images in {', '.join(map(str, paths))}: specify images, folders of images, or arrays."
    count = f" because of {len(problems):,} problems; the first" if len(problems) > 1 else ""
    return f"nothing could be classified{count}: {problems[0]}"


def _tell_skipped(console: Console, paths: tuple[Path, ...]) -> None:
    """Print which files in the folders were skipped because they are not images."""
    skipped = [file for path in paths if path.is_dir() for file in skipped_files(path)]
    if not skipped:
        return
    listed = ", ".join(printable(str(file)) for file in skipped[:SKIPPED])
    more = f" and {len(skipped) - SKIPPED:,} more" if len(skipped) > SKIPPED else ""
    heic = any(file.suffix.lower() in (".heic", ".heif") for file in skipped)
    hint = "; to read HEIC photos, run `pip install pillow-heif`" if heic else ""
    console.print(f"Note: skipped files that are not images: {listed}{more}{hint}", soft_wrap=True)


def _conclude(console: Console, done: int, problems: list[str], out: Path | None) -> None:
    if problems:
        console.print(f"Warning: skipped {counted(len(problems), 'input')} that could not be read:", soft_wrap=True)
        for problem in problems[:PROBLEMS]:
            console.print(f"  {printable(problem)}", soft_wrap=True)
        if len(problems) > PROBLEMS:
            console.print(f"  … and {len(problems) - PROBLEMS:,} more", soft_wrap=True)
    where = f" to {out}" if out else ""
    console.print(f"Wrote {counted(done, 'prediction')}{where}", soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
