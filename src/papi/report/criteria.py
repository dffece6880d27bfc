"""Ranks runs by the candidate labels of validation samples, and computes the regret against selection by accuracy."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from papi.config import RunConfig, Select
from papi.errors import UserError
from papi.report.measures import CRITERIA, Measure, best, finite
from papi.runs.folder import RunFolder
from papi.runs.schema import EpochRow
from papi.training.metrics import picked


@dataclass(frozen=True)
class Judged:
    """A run with its metrics. It is ranked by the metrics of the epoch that it selected."""

    name: str
    method: str
    task: str  # regrets are averaged over runs with the same task
    rows: tuple[EpochRow, ...]  # one or more
    epochs: int | None = None  # planned number of epochs
    select: Select = "last"
    finished: bool = True
    parts: tuple[str, ...] = ()  # identifies the data and the validation set: runs are comparable if these are equal

    @property
    def row(self) -> EpochRow:
        """Metrics of the model that the run keeps, or would keep if it ended now."""
        rule = CRITERIA.get(self.select.replace("-", "_"))
        pick = None if rule is None else best(self.rows, rule)
        return self.rows[-1] if pick is None else pick[0]


@dataclass(frozen=True)
class Place:
    """The value and the rank of a run by one criterion. Equal values share a rank; both are None without a value."""

    value: float | None
    rank: int | None


@dataclass(frozen=True)
class Regret:
    """The regret of a criterion that selects an epoch, measured by test accuracy on the runs of a task."""

    task: str
    criterion: str
    runs: int
    accuracy: float  # mean test accuracy of the selected epochs
    mean: float  # mean difference to the best test accuracy of any epoch
    worst: float
    over_epochs: float | None  # mean rank correlation of criterion and test accuracy over the epochs of a run
    over_runs: float | None  # the same over runs, if three or more have the same validation set


def read_judged(path: Path) -> Judged:
    """Read the run in a folder, finished or not."""
    folder = RunFolder(path)
    record, config = folder.begun(), folder.read_run_config()
    rows = folder.read_rows()
    if not rows:
        raise UserError(f"{path} has no finished epoch yet: leave it out, or compare again after its first epoch.")
    return Judged(
        path.resolve().name,
        config.method,
        _task(config),
        tuple(rows),
        config.epochs,
        config.select,
        folder.read_summary() is not None,
        tuple(str(record.identity.get(name)) for name in ("data_hash", "seed", "data_holdout")),
    )


def _task(config: RunConfig) -> str:
    sets = config.candidates
    rate = "" if sets.kind is None or sets.rate is None else f", q = {sets.rate:g}"
    return f"{config.data}, {sets.kind or 'own'} sets{rate}"


def places(runs: Sequence[Judged], criterion: str) -> list[Place]:
    """Return the value and rank of each run by one of `CRITERIA`; rank 1 is the highest value."""
    values = [CRITERIA[criterion](run.row) for run in runs]
    known = [value for value in values if finite(value)]
    return [
        Place(value, 1 + sum(other > value for other in known)) if finite(value) else Place(None, None)
        for value in values
    ]


def regrets(runs: Sequence[Judged]) -> list[Regret]:
    """Compare each criterion, and the last epoch, with the best epoch by test accuracy, for each task.

    All criteria are computed from the same runs. Runs without test accuracy are ignored.
    """
    tasks: dict[str, list[Judged]] = defaultdict(list)
    for run in runs:
        if any(finite(row.test_accuracy) for row in run.rows):
            tasks[run.task].append(run)
    rules = CRITERIA | {"last": lambda row: row.epoch}
    return [
        found
        for task, members in tasks.items()
        for criterion, measure in rules.items()
        if (found := _regret(task, criterion, measure, members)) is not None
    ]


def _regret(task: str, criterion: str, measure: Measure, runs: Sequence[Judged]) -> Regret | None:
    picks, losses, courses = [], [], []
    ends: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        pairs = [
            (float(value), float(accuracy))
            for row in run.rows
            if finite(value := measure(row)) and finite(accuracy := row.test_accuracy)
        ]
        if not pairs:
            continue
        values, accuracies = zip(*pairs, strict=True)
        chosen = picked(values)
        picks.append(accuracies[chosen])
        losses.append(max(accuracies) - accuracies[chosen])
        courses.append(rank_correlation(values, accuracies))
        ends[run.parts].append((values[chosen], accuracies[chosen]))
    if not picks:
        return None
    across = [rank_correlation(*zip(*group, strict=True)) for group in ends.values() if len(group) >= 3]
    over_epochs, over_runs = (None, None) if criterion == "last" else (_mean_of_known(courses), _mean_of_known(across))
    mean, worst = float(np.mean(losses)), max(losses)
    return Regret(task, criterion, len(picks), float(np.mean(picks)), mean, worst, over_epochs, over_runs)


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Compute Spearman's rank correlation; None if either sequence is constant."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(spearmanr(a, b).statistic)
