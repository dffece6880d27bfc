"""Results stored without their run folders: one JSON row per run in `docs/results/*.jsonl`.

A row contains the settings that differ from the defaults, every option of the method, the results, and the curves for
figures.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from papi.config import from_dict
from papi.errors import UserError
from papi.experiments import cells
from papi.experiments.results import Origin, Result, Results, read_runs
from papi.files.outside import needs_import


def collect(rows: Path, folders: Mapping[Path, str | None]) -> Results:
    """All available results: the stored rows, then the finished runs in or below the given folders.

    A run that has a row is not read again. Each folder maps to the revision of its runs that did not record one, or to
    None if that is unknown.
    """
    found = {result.key: result for file in sorted(rows.glob("*.jsonl")) for result in read_rows(file)}
    for folder, commit in folders.items():
        for key, result in read_runs(folder).items():
            found.setdefault(key, replace(result, made=replace(result.made, commit=result.made.commit or commit)))
    return found


def read_rows(file: Path) -> list[Result]:
    """The results in one file."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").removesuffix("\n").split("\n"), 1):
        try:
            row = json.loads(line)
            config = from_dict(row["settings"])
            if needs_import(config.method):
                raise ValueError(f"its method {config.method} is not PaPi's, and no code is run for a row")
            found.append(Result(config, row["values"], row["curves"], Origin(**row["made"])))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(f"{file}, line {number}, is not a row of results ({error}): remove it.") from error
    return found


def write_rows(file: Path, wanted: set[str], results: Results) -> None:
    """Add the wanted results to a file, unless another file in the folder has them. Existing rows are kept."""
    elsewhere = {result.key for other in file.parent.glob("*.jsonl") if other != file for result in read_rows(other)}
    own = {result.key: result for result in read_rows(file)} if file.exists() else {}
    own |= {key: results[key] for key in wanted & results.keys() if key not in elsewhere}
    if not own:
        return
    lines = sorted(json.dumps(_row(result), separators=(",", ":"), ensure_ascii=False) for result in own.values())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _row(result: Result) -> dict[str, object]:
    made = {name: value for name, value in asdict(result.made).items() if value is not None}
    return {
        "settings": cells.differing(result.config),
        "values": result.values,
        "curves": result.curves,
        "made": made,
    }
