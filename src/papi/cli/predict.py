"""`papi predict`: what a trained model says about new images, as a table, while they are being read."""

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from papi.cli.terminal import make_console, printable
from papi.config import WHOLE
from papi.errors import UserError
from papi.files.durable import output_file

if TYPE_CHECKING:
    import numpy as np

    from papi.data.own.incoming import Part

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
) -> None:
    """Name what is on new images: the label, its probability, and the labels that come next.

    Images are read as they are needed, so that there may be any number of them. What cannot be read is listed at the
    end; the exit code is 0 if anything was predicted.

    Parameters
    ----------
    run
        Folder of a finished run, or its model.safetensors.
    first
        An image, a folder of images, or an array: .npy, or .npz with `images`. For runs on features: an array, .npz
        with `features`, or .csv.
    more
        More of them.
    out
        The file to write. [default: the terminal]
    kind
        csv or jsonl. [default: as the name of the file says, else csv]
    top
        How many labels to give for each image.
    device
        cpu, cuda, cuda:1 …; auto takes a GPU if there is one.
    """
    if top < 1:
        raise UserError(f"--top-k must be 1 or more; got {top}.")
    from papi.data.own.incoming import count_samples, read_parts
    from papi.inference import load
    from papi.training.engine import find_device

    model = load(run, str(find_device(device)))
    names, top = model.class_names, min(top, len(model.class_names))
    problems: list[str] = []
    console = make_console(stderr=True)
    paths = (first, *more)
    done = 0
    parts = read_parts(paths, model.card.shape, BATCH, problems.append)
    with _output(out) as stream, _bar(console) as bar:
        write = _Writer(stream, kind or ("jsonl" if out and out.suffix == ".jsonl" else "csv"), names, top)
        task = bar.add_task("predicting", total=count_samples(paths, model.card.shape) if console.is_terminal else None)
        for part in parts:
            if len(part.samples):
                write(part, model.probabilities(part.samples))
            done += len(part.samples)
            bar.update(task, completed=done)
        if not done:
            raise UserError(_nothing(problems, paths))
    _conclude(console, done, problems, out)


class _Writer:
    """Writes a row for each sample: csv with a column for each of the likeliest labels, or a JSON object a line."""

    def __init__(self, stream: IO[str], kind: str, names: tuple[str, ...], top: int) -> None:
        self.stream, self.names, self.top = stream, names, top
        self.json = kind == "jsonl"
        self.csv = csv.writer(stream, lineterminator="\n")
        self.begun = False

    def __call__(self, part: "Part", probabilities: "np.ndarray") -> None:
        """`probabilities` is `(B, K)`, a row for each sample of the part."""
        import numpy as np

        order = (-probabilities).argsort(1, kind="stable")[:, : self.top]
        values = np.take_along_axis(probabilities, order, 1).tolist()
        labels = [[self.names[k] for k in row] for row in order.tolist()]
        rows = [""] * len(labels) if part.rows is None else part.rows
        if not self.json and not self.begun:  # not before: nothing is written if nothing can be predicted
            others = (f"{what}_{place}" for place in range(2, self.top + 1) for what in ("label", "probability"))
            self.csv.writerow(("file", "row", "label", "probability", *others))
        self.begun = True
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
    """The terminal, or a file that is there when it is whole."""
    if out is None:
        yield sys.stdout
        return
    with output_file(out) as half, half.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def _nothing(problems: list[str], paths: tuple[Path, ...]) -> str:
    if not problems:
        return f"there is no image in {', '.join(map(str, paths))}: give images, folders of images, or arrays."
    more = f" So it is with {len(problems) - 1} more." if len(problems) > 1 else ""
    return f"nothing could be predicted: {problems[0]}{more}"


def _conclude(console: Console, done: int, problems: list[str], out: Path | None) -> None:
    if problems:
        console.print(f"Warning: {len(problems):,} could not be read and are left out:", soft_wrap=True)
        for problem in problems:
            console.print(f"  {printable(problem)}", soft_wrap=True)
    where = f" are in {out}" if out else ""
    console.print(f"{done:,} predictions{where}", soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
