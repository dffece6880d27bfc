"""Runs ranked by candidate sets they were not trained on, and how far such choices are from those by true labels."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]

from papi.config import WITHOUT_RATE
from papi.errors import UserError
from papi.report.reading import is_number
from papi.runs.folder import Row, RunFolder
from papi.training.metrics import CRITERIA, picked


@dataclass(frozen=True)
class Judged:
    """A run with its rows. What judges it are the measurements of the epoch that its own rule picked."""

    name: str
    config: dict[str, Any]
    rows: list[Row]
    finished: bool
    parts: tuple[Any, ...]  # what was held out of what: runs are comparable where these are equal

    @property
    def row(self) -> Row:
        """Measurements of the model that the run keeps, or would keep if it ended now."""
        key = str(self.config.get("select", "last")).replace("-", "_")
        known = [row for row in self.rows if is_number(row.get(key))]
        return known[picked([float(row[key]) for row in known])] if known else self.rows[-1]

    @property
    def task(self) -> str:
        """What runs must share for their regrets to be put together."""
        sets = self.config.get("candidates") or {}
        made = sets.get("kind") or "own"
        rate = "" if made in ("own", *WITHOUT_RATE) else f", q = {sets.get('flip_rate'):g}"
        return f"{self.config.get('data')}, {made} sets{rate}"


@dataclass(frozen=True)
class Place:
    """Where a run stands by one criterion: a value and a rank, equal for equal values. None where it has none."""

    value: float | None
    rank: int | None


@dataclass(frozen=True)
class Regret:
    """How one way of choosing an epoch did on the runs of a task, measured by test images afterwards."""

    task: str
    criterion: str
    runs: int
    accuracy: float  # mean at the picked epochs
    mean: float  # how far below the best epoch by truth that is, on average
    worst: float
    over_epochs: float | None  # mean rank correlation of criterion and test accuracy along the epochs of a run
    over_runs: float | None  # the same from run to run, where three or more were judged by the same samples


def read_judged(path: Path) -> Judged:
    """The run in a folder, finished or not."""
    folder = RunFolder(path)
    record = folder.read_config()
    if record is None:
        raise UserError(f"{path} holds no run: give a folder that `papi train` has written.")
    rows = folder.read_rows()
    if not rows:
        raise UserError(f"{path} has no finished epoch yet: there is nothing to compare.")
    identity = record["identity"]
    parts = (identity.get("data_hash"), identity.get("seed"), identity.get("data_holdout"))
    return Judged(path.resolve().name, record.get("config", {}), rows, folder.read_summary() is not None, parts)


def places(runs: Sequence[Judged], criterion: str) -> list[Place]:
    """The place of each run by a criterion, 1 for the highest."""
    values = [run.row.get(criterion) for run in runs]
    known = [value for value in values if is_number(value)]
    return [
        Place(value, 1 + sum(other > value for other in known)) if is_number(value) else Place(None, None)
        for value in values
    ]


def regrets(runs: Sequence[Judged]) -> list[Regret]:
    """For each task: every criterion, and the last epoch, against the best epoch by test accuracy.

    Everything is computed from rows, so one training serves all criteria. Runs without test accuracy are left out.
    """
    tasks: dict[str, list[Judged]] = defaultdict(list)
    for run in runs:
        if any(is_number(row.get("test_accuracy")) for row in run.rows):
            tasks[run.task].append(run)
    return [
        found
        for task, members in tasks.items()
        for criterion in (*CRITERIA, "last")
        if (found := _regret(task, criterion, members)) is not None
    ]


def _regret(task: str, criterion: str, runs: Sequence[Judged]) -> Regret | None:
    picks, losses, courses = [], [], []
    ends: dict[tuple[Any, ...], list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        pairs = [
            (float(row["epoch"] if criterion == "last" else row[criterion]), float(row["test_accuracy"]))
            for row in run.rows
            if is_number(row.get("test_accuracy")) and (criterion == "last" or is_number(row.get(criterion)))
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
    """Spearman's, with equal values sharing the mean of their ranks; None where either does not vary."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
