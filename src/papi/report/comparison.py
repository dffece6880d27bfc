"""Compares several runs: their results, and the labels that two of them resolve differently."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from papi.report.plots import COLOURS, Line
from papi.report.run import Run
from papi.report.tables import (
    accuracy_of,
    duration,
    mean_candidates,
    percent,
    prototype_accuracy_of,
    resolved_share,
    seconds_of,
    sure_share,
)

PICTURED_PAIRS = 3
PICTURED_IMAGES = 12

Key = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A number that is shown for every run. `best` selects the best value; None if there is no best."""

    title: str
    value: Callable[[Run], float | None]
    show: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None = None


@dataclass
class Standing:
    """The row of one run. `best` contains the columns in which it is the best run on its task."""

    run: Run
    name: str
    task: str
    colour: int
    cells: list[str]
    best: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Difference:
    """Two runs with the same candidates, and the images they disagree on."""

    a: Standing
    b: Standing
    rows: np.ndarray  # training images with different labels, the most confident disagreement first
    images: int

    @property
    def share(self) -> float:
        """Fraction of training images on which the two disagree."""
        return len(self.rows) / self.images


COLUMNS = (
    Column("Test accuracy", accuracy_of, percent, max),
    Column("Prototype accuracy", prototype_accuracy_of, percent, max),
    Column("Labels resolved", resolved_share, percent, max),
    Column("Confident labels", sure_share, percent),
    Column("Candidate labels", mean_candidates, lambda value: f"{value:.1f}"),
    Column("Epochs", lambda run: float(len(run.rows)) or None, lambda value: f"{value:.0f}"),
    Column("Time", seconds_of, duration, min),
)


def standings(runs: Sequence[Run]) -> tuple[list[str], list[Standing]]:
    """Return headings and rows without empty columns. The best values are marked among runs on the same task."""
    values = [[column.value(run) for run in runs] for column in COLUMNS]
    kept = [n for n, column in enumerate(values) if any(value is not None for value in column)]
    names = distinct_names(runs)
    colours = colours_by_method(runs)
    rows = [
        Standing(
            run, names[i], task(run), colours[i],
            [COLUMNS[n].show(value) if (value := values[n][i]) is not None else "–" for n in kept],
        )
        for i, run in enumerate(runs)
    ]  # fmt: skip
    by_task = defaultdict(list)
    for i, row in enumerate(rows):
        by_task[row.task].append(i)
    for members in by_task.values():
        for place, n in enumerate(kept):
            best = COLUMNS[n].best
            known = [value for i in members if (value := values[n][i]) is not None]
            if best is None or len(known) < 2:
                continue
            for i in members:
                if values[n][i] == best(known):
                    rows[i].best.add(place)
    return [COLUMNS[n].title for n in kept], rows


def task(run: Run) -> str:
    """Describe the task of a run. Only runs on the same task are comparable."""
    words = [run.data_name]
    if run.config is not None and run.config.limit is not None:
        words.append(f"{run.config.limit:,} images")
    if kind_of_sets(run) != "uniform":
        words.append(f"{kind_of_sets(run)} candidates")
    rate = flip_rate(run)
    if rate is not None:
        words.append(f"flip rate {rate:g}")
    return ", ".join(words)


def flip_rate(run: Run) -> float | None:
    """Return the flip rate of the candidate sets, if they have one."""
    sets = None if run.config is None else run.config.candidates
    if sets is not None and sets.rate is None:
        return None
    if run.summary is not None:
        return run.summary.flip_rate
    return None if sets is None or sets.kind is None else sets.rate


def kind_of_sets(run: Run) -> str:
    """Return the kind of candidate sets; "uniform" also if it is unknown or if they are part of the data."""
    kind = None if run.config is None else run.config.candidates.kind
    return kind or "uniform"


def distinct_names(runs: Sequence[Run]) -> list[str]:
    """Return folder names, with the parent folder if two are the same."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{run.path.resolve().parent.name}/{name}"
        for name, run in zip(names, runs, strict=True)
    ]


def colours_by_method(runs: Sequence[Run]) -> list[int]:
    """Return a colour per run if there are enough, otherwise one per method."""
    if len(runs) <= COLOURS:
        return list(range(len(runs)))
    methods = list(dict.fromkeys(run.method for run in runs))
    return [methods.index(run.method) % COLOURS for run in runs]


def accuracy_by_flip_rate(rows: Sequence[Standing]) -> list[Line]:
    """Return mean and standard deviation by flip rate for each method, dataset and kind of candidate sets."""
    found: dict[Key, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        rate, accuracy = flip_rate(row.run), accuracy_of(row.run)
        if rate is not None and accuracy is not None:
            found[row.run.method, row.run.data_name, kind_of_sets(row.run)][rate].append(accuracy)
    one_set = len({key[1:] for key in found}) == 1
    curves = []
    for number, (key, values) in enumerate(found.items()):
        rates = sorted(values)
        spread = [float(np.std(values[rate])) for rate in rates]
        means = [float(np.mean(values[rate])) for rate in rates]
        curves.append(Line(key[0] if one_set else ", ".join(key), rates, means, number, spread))
    return curves if any(len(curve.x) > 1 for curve in curves) else []


def differences(rows: Sequence[Standing]) -> list[Difference]:
    """Return all pairs of runs with the same candidate sets, the largest disagreement first."""
    found = []
    for a, b in combinations(rows, 2):
        if a.run.resolved is None or b.run.resolved is None or not same_sets(a.run, b.run):
            continue
        apart = np.flatnonzero(a.run.resolved.label != b.run.resolved.label)
        # If both are confident and disagree, the mistake of one of them is instructive.
        certainty = np.minimum(a.run.resolved.confidence[apart], b.run.resolved.confidence[apart])
        found.append(Difference(a, b, apart[np.argsort(-certainty, kind="stable")], len(a.run.resolved.label)))
    return sorted(found, key=lambda each: (each.a.run.method == each.b.run.method, -len(each.rows)))


def same_sets(a: Run, b: Run) -> bool:
    """Return whether two runs have the same candidates for the same images."""
    if a.candidates is None or b.candidates is None or a.candidates.shape != b.candidates.shape:
        return False
    return a.data == b.data and bool(np.array_equal(a.candidates, b.candidates))
