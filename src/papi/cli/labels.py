"""`papi labels`: the resolved label of every training image, and which of them a person should look at."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from papi.cli.terminal import make_console, printable
from papi.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from papi.labels import Resolved

COLUMNS = (
    "index", "file", "candidates", "label", "confidence", "margin", "entropy", "second_choice", "classifiers_agree",
    "outside_candidates", "second_look_rank",
)  # fmt: skip
SHOWN = 10


def labels(run: Path, /, *, out: Path | None = None) -> None:
    """Write the resolved label of every training image, how sure it is, and a rank of what is worth a second look.

    Parameters
    ----------
    run
        Folder of a finished run.
    out
        The csv file to write. [default: labels.csv in the run's folder]
    """
    import numpy as np

    from papi.labels import resolve
    from papi.runfolder import RunFolder

    folder = RunFolder(run)
    record = folder.read_config()
    if record is None:
        raise UserError(f"{run} holds no run: give a folder that `papi train` has written.")
    if not folder.arrays_file.exists():
        raise UserError(f"the run in {run} is not finished: `papi train` with the same settings continues it.")
    sets = folder.read_arrays(folder.candidates_file)
    arrays = folder.read_arrays(folder.arrays_file)
    candidates = sets["candidates"]
    found = resolve(candidates, arrays["confidence"])
    agree = arrays["linear_label"] == arrays["prototype_label"] if "prototype_label" in arrays else None
    files = sets.get("file_names", np.full(len(candidates), ""))
    file = out or run / "labels.csv"
    rows = _rows(candidates, found, agree, files, record["classes"])
    try:
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}). Choose another with --out.") from error
    console = make_console()
    console.print(_first(rows))
    console.print(f"{len(rows):,} resolved labels are in {file}", soft_wrap=True)


def _rows(
    candidates: "np.ndarray", found: "Resolved", agree: "np.ndarray | None", files: "np.ndarray", classes: list[str]
) -> list[tuple[object, ...]]:
    """A row for each training image, in their order."""
    return [
        (
            i,
            str(files[i]),
            "|".join(classes[k] for k in candidates[i].nonzero()[0]),
            classes[found.label[i]],
            f"{found.confidence[i]:.6f}",
            f"{found.margin[i]:.6f}",
            f"{found.entropy[i]:.6f}",
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
        index, file, _, label, confidence, _, _, second, *_ = (str(value) for value in row)
        table.add_row(Text(printable(file or index)), Text(printable(label)), confidence[:4], Text(printable(second)))
    return table
