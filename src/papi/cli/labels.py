"""`papi labels`: write the resolved label of every training image and rank the doubtful ones."""

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
from papi.cli.terminal import counted, make_console, printable
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
        Folder of a run. For an unfinished run, the last checkpoint is used.
    out
        Output csv file; with `--fix`, the folder of the new run. [default: labels.csv in the run folder; with `--fix`,
        a folder next to it whose name ends in -fixed]
    raw
        Write names unchanged. By default, a single quote is put before names that a spreadsheet would interpret as
        formulas.
    format
        Output format: csv, or the format of an annotation tool. label-studio writes a JSON file with the resolved
        labels as pre-annotations, their scores and the model version.
    tasks
        With `--format label-studio`: the export that contains the tasks. [default: the export that the run was trained
        on; otherwise a new task for each image]
    decisions
        With the format of a tool: csv file with your decisions, as for `--fix`. They replace the resolved labels.
    image_prefix
        With `--format label-studio` and no tasks: prefix for the file names, such as /data/local-files/?d=photos/
    fix
        Csv file with your decisions in the columns index, file, label, answer and note, as saved by the page of `papi
        report`. One label becomes the only candidate of its image, several labels become its candidate set, "none"
        excludes all its candidates, "bad" removes the image from the training set, and "skip" changes nothing.
    epochs
        With `--fix`: number of epochs to train. [default: a quarter of the run's epochs]
    data_dir
        With `--fix` or an unfinished run: folder where known datasets are stored. [default: the folder of the run]
    """
    if fix is None:
        named = data_dir, method, network
        if epochs is not None or (named != (None, None, None) and RunFolder(run).arrays_file.exists()):
            raise UserError(
                "--epochs, --data-dir, --method and --network are only used for further training: add --fix with your "
                "decisions."
            )
        if format == "csv" and decisions is not None:
            raise UserError("--decisions requires the format of an annotation tool: add --format.")
        if format != "label-studio" and (tasks, image_prefix) != (None, None):
            raise UserError("--tasks and --image-prefix require --format label-studio: add it or leave them out.")
        if format == "csv":
            _write(run, out, raw, named)
            return
        sets, arrays, _ = _kept(RunFolder(run), named)
        write_back(run, out, format, tasks, decisions, image_prefix, RunFolder(run).begun(), sets, arrays)
        return
    if format != "csv":
        raise UserError(
            f"--fix cannot be combined with --format {format}: leave it out, then run `papi labels` on the new run."
        )
    folder = out or fixed_folder(run)
    if folder.suffix == ".csv":
        raise UserError(f"--out {folder} looks like a file: with --fix, specify the folder of the new run.")
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs must be 1 or more; got {epochs}.")
    from papi.cli.train_progress import show_training_on  # imports torch, which writing labels does not need

    show_training_on(run, fix, folder, epochs, data_dir, method, network)
    _write(folder, None, raw)


def _write(
    run: Path, out: Path | None, raw: bool, named: tuple[Path | None, str | None, str | None] = (None, None, None)
) -> None:
    """Write the labels of a run as a csv file, by default into its folder, and print the first rows.

    `named` holds the data folder, the method and the network, which are needed to rebuild an unfinished run.
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
        console.print(f"This run continues {printable(record.parent.folder)} with your decisions.", soft_wrap=True)
    console.print(f"Wrote {counted(len(rows), 'resolved label')} to {file}", soft_wrap=True)
    if note is not None:
        return
    name = shlex.quote(str(run))
    console.print(
        "Next: decide the labels of doubtful images in the browser, download decisions.csv, and train with it:"
    )
    console.print(f"  papi report {name} --open", soft_wrap=True)
    console.print(f"  papi labels {name} --fix decisions.csv", soft_wrap=True)


def _kept(folder: RunFolder, named: tuple[Path | None, str | None, str | None]) -> tuple[Sets, Arrays, str | None]:
    """Return the candidate sets, the final or latest results, and a note if the run is unfinished."""
    if folder.arrays_file.exists():
        return *folder.read_kept(), None
    from papi.setup.stopped import is_stopped, open_stopped  # imports torch, which finished runs do not need

    if not is_stopped(folder.path):
        raise UserError(
            f"the run in {folder.path} has not saved a checkpoint yet: continue it with the same `papi train` command."
        )
    data_dir, method, network = named
    trained, note = open_stopped(folder.path, data_dir=data_dir, method=method, network=network)
    return folder.read_sets(), trained.arrays, note


def _rows(record: Record, sets: Sets, arrays: Arrays) -> list[tuple[object, ...]]:
    """Return one row per training image, in their order."""
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
    """Return a table of the most doubtful images."""
    table = Table("image", "label", "confidence", "second choice", title="Most doubtful images")
    for row in sorted(rows, key=lambda each: int(str(each[-1])))[:SHOWN]:
        index, file, _, _, label, confidence, _, _, second, *_ = (str(value) for value in row)
        table.add_row(Text(printable(file or index)), Text(printable(label)), confidence[:4], Text(printable(second)))
    return table
