"""`papi labels`: the resolved label of every training image, and which of them a person should look at."""

import csv
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from papi.cli.terminal import make_console, printable
from papi.cli.train import follow
from papi.config import WHOLE
from papi.errors import UserError
from papi.files.durable import output_file

if TYPE_CHECKING:
    import numpy as np

    from papi.runs.labels import Resolved

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
    fix: Path | None = None,
    epochs: Annotated[int | None, WHOLE, Parameter(show_default=False)] = None,
    data_dir: Annotated[Path | None, Parameter(show_default=False)] = None,
) -> None:
    """Write the resolved label of every training image, how sure it is, and a rank of what is worth a second look.

    With `--fix`, a person's decisions become the only possible label of their images, and the run is trained on in a
    new folder; its labels are then written there. The same command again continues it if it was stopped.

    Parameters
    ----------
    run
        Folder of a finished run.
    out
        The csv file to write; with `--fix`, the folder of the new run. [default: labels.csv in the run's folder; with
        `--fix` a folder beside it that ends in -fixed]
    fix
        Decisions: a csv with the columns index, file and label, as the page of `papi report` gives it.
    epochs
        With `--fix`: how long to train on. [default: a quarter of the run's epochs]
    data_dir
        With `--fix`: folder in which datasets lie. [default: that of the run]
    """
    if fix is None:
        if epochs is not None or data_dir is not None:
            raise UserError("--epochs and --data-dir are for training on: give decisions with --fix, too.")
        _write(run, out or run / "labels.csv")
        return
    from papi.runs.decisions import fixed_folder, train_with

    folder = out or fixed_folder(run)
    if folder.suffix == ".csv":
        raise UserError(f"--out {folder} looks like a file: with --fix it is the folder of the new run.")
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs must be 1 or more; got {epochs}.")
    follow(
        folder,
        lambda stop, progress: train_with(
            run, fix, folder, epochs=epochs, data_dir=data_dir, stop_requested=stop, progress=progress
        ),
    )
    _write(folder, folder / "labels.csv")


def _write(run: Path, file: Path) -> None:
    """The table of a finished run as a csv file, and its first rows on the terminal."""
    import numpy as np

    from papi.runs.folder import RunFolder
    from papi.runs.labels import resolve

    folder = RunFolder(run)
    record = folder.read_config()
    if record is None:
        raise UserError(f"{run} holds no run: give a folder that `papi train` has written.")
    if not folder.arrays_file.exists():
        raise UserError(f"the run in {run} is not finished: `papi train` with the same settings continues it.")
    sets = folder.read_arrays(folder.candidates_file)
    arrays = folder.read_arrays(folder.arrays_file)
    candidates = sets["candidates"]
    found = resolve(candidates, arrays["confidence"], arrays.get("second_opinion"))
    agree = arrays["linear_label"] == arrays["prototype_label"] if "prototype_label" in arrays else None
    files = sets.get("file_names", np.full(len(candidates), ""))
    places = np.full(len(candidates), "") if "file_names" in sets else sets.get("rows", np.arange(len(candidates)))
    rows = _rows(candidates, found, agree, files, places, record["classes"])
    with output_file(file) as half, half.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    console = make_console()
    console.print(_first(rows))
    if "parent" in record:
        console.print(f"This run goes on from {printable(record['parent']['folder'])} with decisions.", soft_wrap=True)
    console.print(f"{len(rows):,} resolved labels are in {file}", soft_wrap=True)
    name = shlex.quote(str(run))
    console.print("Next: decide the doubtful ones in the browser, and train on with what you decided:")
    console.print(f"  papi report {name} --open", soft_wrap=True)
    console.print(f"  papi labels {name} --fix decisions.csv", soft_wrap=True)


def _rows(
    candidates: "np.ndarray",
    found: "Resolved",
    agree: "np.ndarray | None",
    files: "np.ndarray",
    places: "np.ndarray",
    classes: list[str],
) -> list[tuple[object, ...]]:
    """A row for each training image, in their order."""
    from papi.data.own.tables import join_labels

    return [
        (
            i,
            str(files[i]),
            str(places[i]),
            join_labels([classes[k] for k in candidates[i].nonzero()[0]]),
            classes[found.label[i]],
            f"{found.confidence[i]:.6f}",
            f"{found.margin[i]:.6f}",
            f"{abs(found.entropy[i]):.6f}",
            "" if found.second[i] < 0 else classes[found.second[i]],
            "" if agree is None else ("yes" if agree[i] else "no"),
            "" if found.outside[i] < 0 else classes[found.outside[i]],
            int(found.rank[i]),
        )
        for i in range(len(candidates))
    ]


def _first(rows: list[tuple[object, ...]]) -> Table:
    """The images most worth a second look."""
    table = Table("image", "label", "confidence", "or perhaps", title="Most worth a second look")
    for row in sorted(rows, key=lambda each: int(str(each[-1])))[:SHOWN]:
        index, file, _, _, label, confidence, _, _, second, *_ = (str(value) for value in row)
        table.add_row(Text(printable(file or index)), Text(printable(label)), confidence[:4], Text(printable(second)))
    return table
