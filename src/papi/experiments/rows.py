"""Results of finished runs as compact rows: read from run folders, kept in `docs/results/*.jsonl`.

A row holds the settings that differ from the defaults, every option of the method, the result, and curves for figures.
A run is found by its settings, not by the name of its folder.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from papi.config import RunConfig, from_dict
from papi.data.loader import batch_bounds
from papi.errors import UserError
from papi.experiments import cells
from papi.runs.folder import RunFolder

VALUES = (
    "test_accuracy",
    "test_accuracy_best",
    "test_accuracy_last10",
    "prototype_accuracy",
    "disambiguation_accuracy",
    "mean_candidates",
    "training_images",
    "cpu_seconds",
    "seconds",
    "peak_memory",
)
CURVES = (
    "test_accuracy",
    "prototype_accuracy",
    "disambiguation_accuracy",
    "linear_only_right",
    "prototype_only_right",
    "intra_similarity",
    "inter_similarity",
    "covering_rate",
    "approximated_accuracy",
    "candidate_likelihood",
    "cpu_seconds",
)
DIGITS = 5


@dataclass(frozen=True)
class Result:
    """What came out of a finished run."""

    config: RunConfig  # with every option of the method, as it was then
    values: dict[str, Any]
    curves: dict[str, list[float | None]]  # a value an epoch
    made: dict[str, Any]  # when, and with which versions, threads and commit

    @cached_property
    def key(self) -> str:
        return cells.key(self.config, finished=True)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        images, batch = int(self.values["training_images"]), self.config.batch_size or 1
        return (self.config.epochs or 0) * len(batch_bounds(images, batch, bool(self.config.drop_last)))

    @property
    def processor(self) -> str:
        """The kind of processor that it was trained on: times of different ones do not compare."""
        return str(self.made["versions"].get("processor", "unknown"))

    def to_row(self) -> dict[str, Any]:
        settings = cells.settings(self.config)
        return {"settings": settings, "values": self.values, "curves": self.curves, "made": self.made}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Result":
        return cls(from_dict(row["settings"]), row["values"], row["curves"], row["made"])


Results = dict[str, Result]  # by key


def read_run(path: Path, commit: str | None = None) -> Result | None:
    """The result of a run folder; None if it has not finished, was not made by `papi train`, or is not understood.

    `commit` is for runs that do not say themselves which revision made them.
    """
    folder = RunFolder(path)
    try:
        record, summary = folder.read_config(), folder.read_summary()
        if record is None or summary is None or not _by_papi_train(record["command"]):
            return None
        config = cells.finished_config(record)
        rows = folder.read_rows()
        commit = record.get("commit") or commit
        result = Result(
            config,
            {name: _rounded(summary[name]) for name in VALUES if summary.get(name) is not None},
            {name: [_rounded(row.get(name)) for row in rows] for name in CURVES if any(name in row for row in rows)},
            {"versions": record["versions"], "threads": record["threads"], "date": _date(folder.summary_file)}
            | ({"commit": commit} if commit else {}),
        )
        _ = result.key  # settings that are not known any more show here
    except (UserError, TypeError, KeyError, ValueError):
        return None
    return result


def _by_papi_train(command: list[str]) -> bool:
    """Scripts may measure the same settings on other images, as those that settings are chosen with."""
    program = Path(command[0])
    return (program.stem == "papi" or program.parts[-2:] == ("papi", "__main__.py")) and command[1:2] == ["train"]


def _date(file: Path) -> str:
    return datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).date().isoformat()


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def collect(rows: Path, folders: Mapping[Path, str | None]) -> Results:
    """All results at hand: the rows of a folder, then finished runs in or below others that have no row yet.

    With each folder comes the revision of runs that do not say theirs, where that is known.
    """
    found = {result.key: result for file in sorted(rows.glob("*.jsonl")) for result in read_rows(file)}
    for folder, commit in folders.items():
        for file in sorted(folder.rglob("summary.json")):
            result = read_run(file.parent, commit)
            if result is not None:
                found.setdefault(result.key, result)
    return found


def read_rows(file: Path) -> list[Result]:
    found = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        try:
            found.append(Result.from_row(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{file}, line {number}, is not a row of results ({error}): remove it.") from error
    return found


def write_rows(file: Path, wanted: set[str], results: Results) -> None:
    """Keep the wanted results in a file, beside those it has; a result that another file has is not kept twice."""
    elsewhere = {result.key for other in file.parent.glob("*.jsonl") if other != file for result in read_rows(other)}
    own = {result.key: result for result in read_rows(file)} if file.exists() else {}
    own |= {key: results[key] for key in wanted & results.keys() if key not in elsewhere}
    if not own:
        return
    lines = sorted(json.dumps(result.to_row(), separators=(",", ":"), ensure_ascii=False) for result in own.values())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines))
