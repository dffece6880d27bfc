"""Results of finished runs, read from their folders. A run is found by its settings, not by the name of its folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from papi.config import RunConfig
from papi.data.loader import batch_bounds
from papi.experiments import cells
from papi.files.outside import needs_import
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
class Origin:
    """The date, versions, threads and commit of a run."""

    versions: dict[str, str]
    threads: int | None
    date: str
    commit: str | None = None

    @property
    def processor(self) -> str:
        """The kind of processor. Times on different kinds are not comparable."""
        return self.versions.get("processor", "unknown")


@dataclass(frozen=True)
class Result:
    """The outcome of a finished run."""

    config: RunConfig  # with every option of the method, as recorded
    values: dict[str, float]
    curves: dict[str, list[float | None]]  # one value per epoch
    made: Origin

    @cached_property
    def key(self) -> str:
        """The key of the cell that this run fills."""
        return cells.key(self.config, finished=True)

    @property
    def steps(self) -> int:
        """The number of steps of the whole run."""
        settings, images = cells.settings_of(self.config), int(self.values["training_images"])
        return settings.epochs * len(batch_bounds(images, settings.batch_size, settings.drop_last))


Results = dict[str, Result]  # by key


def read_runs(folder: Path) -> Results:
    """The results of all finished runs in or below a folder. Of equal runs, the first by path is used."""
    found: Results = {}
    for file in sorted(folder.rglob("summary.json")):
        result = read_run(file.parent)
        if result is not None:
            found.setdefault(result.key, result)
    return found


def read_run(path: Path) -> Result | None:
    """The result of one run folder.

    None if the run is unfinished, was not made by `papi train`, has settings that this version does not know, or needs
    a method that is not imported yet: no code is run only because a file names it.
    """
    folder = RunFolder(path)
    try:
        record, summary = folder.read_record(), folder.read_summary()
        if record is None or summary is None or not _by_papi_train(record.command):
            return None
        if needs_import(record.run_config.method):
            return None
        rows, known = folder.read_rows(), summary.to_json()
        curves = {name: [_rounded(getattr(row, name)) for row in rows] for name in CURVES}
        result = Result(
            cells.finished_config(record),
            {name: value for name in VALUES if (value := _rounded(known[name])) is not None},
            {name: curve for name, curve in curves.items() if any(value is not None for value in curve)},
            Origin(dict(record.versions), record.threads, _date(folder.summary_file), record.commit),
        )
        _ = result.key  # fails for settings that are no longer known
    except (AttributeError, KeyError, TypeError, ValueError):  # a UserError is a ValueError
        return None
    return result


def _by_papi_train(command: Sequence[str]) -> bool:
    """Whether `papi train` made a run. Scripts may use the same settings with other images, so they do not count."""
    if len(command) < 2:
        return False
    program = Path(command[0])
    return (program.stem == "papi" or program.parts[-2:] == ("papi", "__main__.py")) and command[1] == "train"


def _date(file: Path) -> str:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()


def _rounded(value: float | None) -> float | None:
    """Round floats and leave integers unchanged."""
    return round(value, DIGITS) if isinstance(value, float) else value
