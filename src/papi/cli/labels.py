"""`papi labels`: the resolved label of every training image, and which of them a person should look at."""

import csv
import shlex
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from papi.cli.labels_back import write_back
from papi.cli.options import SWITCH, WHOLE, OutsideMethod, OutsideNetwork
from papi.cli.terminal import make_console, printable
from papi.data.own.tables import join_labels
from papi.errors import UserError
from papi.files.durable import output_file, require_output
from papi.files.spreadsheets import cell
from papi.runs.decisions import fixed_folder
from papi.runs.folder import RunFolder
from papi.runs.labels import resolve
from papi.runs.schema import Arrays, Record, Sets

COLUMNS = (
    "index", "file", "row", "candidates", "label", "confidence", "margin", "entropy", "second_choice",
    "classifiers_agree", "outside_candidates", "second_look_rank",
)  # fmt: skip
SHOWN = 10


def labels(
    run: Path,
    /,
    *,
    out: Path | None = None,
    raw: Annotated[bool, SWITCH] = False,
    format: Literal["csv", "label-studio", "cvat", "coco", "via", "crowd"] = "csv",
    tasks: Path | None = None,
    decisions: Path | None = None,
    image_prefix: str | None = None,
    fix: Path | None = None,
    epochs: Annotated[int | None, WHOLE, Parameter(show_default=False)] = None,
    data_dir: Annotated[Path | None, Parameter(show_default=False)] = None,
    method: OutsideMethod = None,
    network: OutsideNetwork = None,
) -> None:
    """Write the resolved label of every training image, its confidence, and a ranking of doubtful images.

    Parameters
    ----------
    run
        Folder of a run. If it has not finished, its last checkpoint is used.
    out
        The csv file to write; with `--fix`, the folder of the new run. [default: labels.csv in the folder of the run;
        with `--fix`, a folder beside it whose name ends in -fixed]
    raw
        Write names as they are. Without it, names that a spreadsheet would compute begin with a single quote.
    format
        csv, or the format of an annotation tool. For label-studio, a JSON file with the resolved labels as
        pre-annotations, their score and the version of the model.
    tasks
        With `--format label-studio`: the export that has the tasks. [default: the one that the run was trained with;
        else a new task for each image]
    decisions
        With the format of a tool: your decisions, a csv as for `--fix`. They take the place of resolved labels.
    image_prefix
        With `--format label-studio` and no tasks: what goes before the file names, such as /data/local-files/?d=photos/
    fix
        Your decisions: a csv with the columns index, file, label, answer and note, as the page of `papi report` writes
        it. Labels become the only candidates of their images, several labels become the set, "none" excludes the
        candidates, "bad" takes an image out of the training set, "skip" changes nothing.
    epochs
        With `--fix`: for how many epochs to train. [default: a quarter of the run's epochs]
    data_dir
        With `--fix`, and for a run that has not finished: folder of the datasets. [default: that of the run]
    """
    if fix is None:
        named = data_dir, method, network
        if epochs is not None or (named != (None, None, None) and RunFolder(run).arrays_file.exists()):
            raise UserError(
                "--epochs, --data-dir, --method and --network are for training on: give decisions with --fix, too."
            )
        if format == "csv" and decisions is not None:
            raise UserError("--decisions is for the format of an annotation tool: give --format, too.")
        if format != "label-studio" and (tasks, image_prefix) != (None, None):
            raise UserError("--tasks and --image-prefix are for --format label-studio: give it, too.")
        if format == "csv":
            _write(run, out, raw, named)
            return
        sets, arrays, _ = _kept(RunFolder(run), named)
        write_back(run, out, format, tasks, decisions, image_prefix, RunFolder(run).begun(), sets, arrays)
        return
    if format != "csv":
        raise UserError("--fix trains and writes a csv: leave out --format, and write the labels of the new run after.")
    folder = out or fixed_folder(run)
    if folder.suffix == ".csv":
        raise UserError(f"--out {folder} looks like a file: with --fix, give the folder of the new run.")
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs must be 1 or more; got {epochs}.")
    from papi.cli.train_progress import show_training_on  # loads torch: labels alone do without

    show_training_on(run, fix, folder, epochs, data_dir, method, network)
    _write(folder, None, raw)


def _write(
    run: Path, out: Path | None, raw: bool, named: tuple[Path | None, str | None, str | None] = (None, None, None)
) -> None:
    """Write the table of a run as a csv file, by default into its folder, and show its first rows.

    What is `named` is where the data are now and code from outside: a run that has not finished is built again.
    """
    folder = RunFolder(run)
    file, within = out or run / "labels.csv", None if out else run
    require_output(file, inputs=folder.files, within=within)
    record = folder.begun()
    sets, arrays, note = _kept(folder, named)
    rows = _rows(record, sets, arrays)
    with output_file(file, within=within) as half, half.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(rows if raw else ([cell(str(value)) for value in row] for row in rows))
    console = make_console()
    if note is not None:
        console.print(f"Note: {note}", soft_wrap=True)
    console.print(_first(rows))
    if record.parent is not None:
        console.print(f"This run continues {printable(record.parent.folder)} with decisions.", soft_wrap=True)
    console.print(f"{len(rows):,} resolved labels are in {file}", soft_wrap=True)
    if note is not None:
        return
    name = shlex.quote(str(run))
    console.print("Next: decide the doubtful images in the browser, then train with your decisions:")
    console.print(f"  papi report {name} --open", soft_wrap=True)
    console.print(f"  papi labels {name} --fix decisions.csv", soft_wrap=True)


def _kept(folder: RunFolder, named: tuple[Path | None, str | None, str | None]) -> tuple[Sets, Arrays, str | None]:
    """Return the candidate sets, what the run ended with or has come to, and a note if it has not finished."""
    if folder.arrays_file.exists():
        return *folder.read_kept(), None
    from papi.setup.stopped import is_stopped, open_stopped  # loads torch: labels of finished runs do without

    if not is_stopped(folder.path):
        raise UserError(
            f"the run in {folder.path} has not saved anything yet: `papi train` with the same settings continues it."
        )
    data_dir, method, network = named
    trained, note = open_stopped(folder.path, data_dir=data_dir, method=method, network=network)
    return folder.read_sets(), trained.arrays, note


def _rows(record: Record, sets: Sets, arrays: Arrays) -> list[tuple[object, ...]]:
    """Return a row for each training image, in their order."""
    found = resolve(sets.candidates, arrays.confidence, arrays.second_opinion)
    linear, prototype = arrays.linear_label, arrays.prototype_label
    agree = None if linear is None or prototype is None else np.equal(linear, prototype)
    count, classes = len(sets.candidates), record.classes
    nothing = np.full(count, "")
    files = nothing if sets.file_names is None else sets.file_names
    places = nothing if sets.file_names is not None else np.arange(count) if sets.rows is None else sets.rows
    return [
        (
            i,
            str(files[i]),
            str(places[i]),
            join_labels([classes[k] for k in sets.candidates[i].nonzero()[0]]),
            classes[found.label[i]],
            f"{found.confidence[i]:.6f}",
            f"{found.margin[i]:.6f}",
            f"{abs(found.entropy[i]):.6f}",
            "" if found.second[i] < 0 else classes[found.second[i]],
            "" if agree is None else ("yes" if agree[i] else "no"),
            "" if found.outside[i] < 0 else classes[found.outside[i]],
            int(found.rank[i]),
        )
        for i in range(count)
    ]


def _first(rows: list[tuple[object, ...]]) -> Table:
    """Return a table of the images that are most worth a second look."""
    table = Table("image", "label", "confidence", "or perhaps", title="Most worth a second look")
    for row in sorted(rows, key=lambda each: int(str(each[-1])))[:SHOWN]:
        index, file, _, _, label, confidence, _, _, second, *_ = (str(value) for value in row)
        table.add_row(Text(printable(file or index)), Text(printable(label)), confidence[:4], Text(printable(second)))
    return table
