"""The numbers in the sentences of the results pages, computed from the stored rows.

A page requests a column: all methods on one task, with equal epochs or equal compute. A column ranks its methods, and
each of its cells gives the accuracy, the standard deviation and everything else that its runs recorded.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from papi.config import RunConfig
from papi.errors import UserError
from papi.experiments import SUITES, cells, tables
from papi.experiments.compute import units
from papi.experiments.cpu import BUDGET, UNEVEN
from papi.experiments.results import Result, Results
from papi.experiments.suites import Entry, Table, Task

_WITH_PRIOR = ", set_prior=auto"


@dataclass(frozen=True)
class Cell:
    """The results of one method on one task."""

    entry: Entry
    place: str  # location, for error messages
    epochs: int | None
    outcome: tables.Outcome

    @property
    def label(self) -> str:
        """The name of the method in the tables."""
        return self.entry.label

    @property
    def name(self) -> str:
        """The name of the method in a sentence."""
        return in_words(self.label)

    @property
    def units(self) -> int:
        """Encoder units per step and image."""
        return units(self.entry.method, self.entry.settings)

    @property
    def runs(self) -> list[Result]:
        """The finished runs, sorted by seed. A page that mentions a cell without runs is an error."""
        if not self.outcome.runs:
            raise UserError(f"a page mentions {self.label} ({self.place}), which has no finished run.")
        return [run for _, run in sorted(self.outcome.runs.items())]

    @property
    def mean(self) -> float:
        """Mean test accuracy in %."""
        return statistics.mean(self.by_seed)

    @property
    def spread(self) -> float:
        """Standard deviation over seeds, in points."""
        return statistics.pstdev(self.by_seed)

    @property
    def by_seed(self) -> list[float]:
        """Test accuracy in %, per seed."""
        return self.percent("test_accuracy")

    def percent(self, name: str) -> list[float]:
        """A value of the runs in %, per seed."""
        return [100 * run.values[name] for run in self.runs]

    def value(self, name: str) -> float:
        """The mean of a value of the runs."""
        return statistics.mean(run.values[name] for run in self.runs)

    @property
    def step_seconds(self) -> float:
        """CPU seconds per step."""
        return statistics.mean(run.values["cpu_seconds"] / run.steps for run in self.runs)

    def curve(self, name: str) -> list[float]:
        """A curve of the runs, averaged over seeds, one value per epoch."""
        curves = [run.curves[name] for run in self.runs]
        return [statistics.mean(value for value in values if value is not None) for values in zip(*curves, strict=True)]


class Column:
    """All methods on one task, with equal epochs or equal compute."""

    def __init__(self, where: str, table: Table, task: Task, results: Results) -> None:
        self.task = task
        self._place = f"{where}, {table.title}, {task.name}"
        self._found = tables.column(table, task, results)
        self._lengths = {entry: table.length(entry) for entry in table.entries}

    def _cell(self, entry: Entry) -> Cell:
        return Cell(entry, self._place, self._lengths[entry], self._found[entry])

    def __getitem__(self, label: str) -> Cell:
        for entry in self._found:
            if entry.label == label:
                return self._cell(entry)
        known = ", ".join(entry.label for entry in self._found)
        raise UserError(f"a page mentions {label}, which is not in {self._place}: {known}.")

    def has(self, label: str) -> bool:
        """Whether a method has runs here. Pages check this before they mention a method that may be missing."""
        return any(entry.label == label and found.runs for entry, found in self._found.items())

    @cached_property
    def ranked(self) -> list[Cell]:
        """Methods from best to worst, without ceilings and cells with fewer runs than others."""
        return [self._cell(entry) for entry in tables.ranking(self._found)]

    @property
    def first(self) -> Cell:
        """The best method."""
        if not self.ranked:
            raise UserError(f"a page mentions the best of {self._place}, where no run is finished.")
        return self.ranked[0]

    @property
    def second(self) -> Cell:
        """The runner-up."""
        return self.ranked[1]

    @property
    def close(self) -> bool:
        """Whether the lead of the best over the runner-up is smaller than the larger of their standard deviations."""
        spread = max(self.first.spread, self.second.spread)
        return self.first.mean - self.second.mean < spread

    @property
    def _begun(self) -> list[Cell]:
        """Methods with finished runs, without ceilings."""
        return [self._cell(entry) for entry, found in self._found.items() if found.runs and not entry.ceiling]

    @property
    def unfinished_ahead(self) -> list[Cell]:
        """Methods with unfinished runs whose mean so far is better than the best."""
        ranked = {cell.label for cell in self.ranked}
        return [cell for cell in self._begun if cell.label not in ranked and cell.mean > self.first.mean]

    def rival(self, *left_out: str) -> Cell:
        """The method with the best mean so far whose name begins with none of these, finished or not."""
        others = [cell for cell in self._begun if not cell.label.startswith(left_out)]
        return max(others, key=lambda cell: cell.mean)

    def rank(self, label: str) -> int:
        """The rank of a method, from 1."""
        return [cell.label for cell in self.ranked].index(label) + 1

    def best(self, *left_out: str) -> Cell:
        """The best method whose name begins with none of these."""
        return next(cell for cell in self.ranked if not cell.label.startswith(left_out))

    def lead_by_seed(self, ours: str, theirs: str) -> list[float]:
        """How far one method is ahead of another, per seed."""
        a, b = self[ours].outcome.accuracies, self[theirs].outcome.accuracies
        return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]

    def with_prior(self, label: str) -> str | None:
        """The label under which a method's runs with `set_prior=auto` are found, or None if there are none.

        On uniform sets, they are the runs without it.
        """
        name = f"{label}{_WITH_PRIOR}"
        return name if self.has(name) else None if self.task in UNEVEN else label


class Measured:
    """The columns of our suites."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def column(self, suite: str, task: str, *, epochs: bool = False, times: int = 1) -> Column:
        """A task of a suite by its label, with equal epochs or with a multiple of the common compute budget."""
        for table in _tables(suite):
            for each in table.tasks:
                if task in (each.label, each.name) and _fits(table, epochs, times):
                    return Column(suite, table, each, self.results)
        raise UserError(f"a page mentions {task} of {suite}, which is in none of its tables.")

    def columns(self, suite: str, *, epochs: bool = False, times: int = 1) -> list[Column]:
        """Every task of a suite that has finished runs."""
        tasks = [(table, task) for table in _tables(suite) if _fits(table, epochs, times) for task in table.tasks]
        found = {task.name: Column(suite, table, task, self.results) for table, task in reversed(tasks)}
        return [column for column in reversed(found.values()) if column.ranked]

    def merged(self, suite: str) -> list[Column]:
        """Every task of a suite with the common compute budget; a column has the methods of all its tables."""
        fitting = [table for table in SUITES["cpu"][suite].tables if table.units == BUDGET]
        every = replace(
            fitting[0],
            entries=tuple(dict.fromkeys(entry for table in fitting for entry in table.entries)),
            tasks=tuple(dict.fromkeys(task for table in fitting for task in table.tasks)),
        )
        return [Column(suite, every, task, self.results) for task in every.tasks]

    def count(self, suite: str) -> tuple[int, int]:
        """The number of finished runs of a suite, and of all its runs."""
        keys = {cells.key(config) for config in SUITES["cpu"][suite].cells()}
        return len(keys & self.results.keys()), len(keys)

    def hours(self, suite: str) -> float:
        """CPU hours of the finished runs of a suite."""
        keys = {cells.key(config) for config in SUITES["cpu"][suite].cells()}
        return cpu_hours(self.results[key] for key in keys & self.results.keys())


def cpu_hours(runs: Iterable[Result]) -> float:
    """Hours of training, in CPU time if it was measured."""
    return sum(run.values.get("cpu_seconds", run.values["seconds"]) for run in runs) / 3600


def _tables(suite: str) -> Iterator[Table]:
    asked = SUITES["cpu"][suite]
    yield from asked.tables
    yield from (figure.table for figure in asked.figures)


def _fits(table: Table, epochs: bool, times: int) -> bool:
    if epochs:
        return table.epochs is not None
    return table.epochs is None and table.units in (None, times * BUDGET)


def default_form() -> str:
    """The form of PaPi that `papi train` runs, as named in the tables."""
    options = cells.settings_of(RunConfig()).options
    passes = {"paper": "", "two": ", two passes", "one": ", one pass"}[str(options["passes"])]
    prior = options["set_prior"]
    return f"PaPi{passes}" + ("" if prior == "off" else f", set_prior={prior}")


def enumerated(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def in_words(label: str) -> str:
    """The name of a method in a sentence: `PaPi, one pass, set_prior=auto` becomes `PaPi (one pass, …)`."""
    name, _, form = label.partition(", ")
    words = [f"`{word}`" if "=" in word else word for word in form.split(", ")]
    return f"{name} ({', '.join(words)})" if form else name


def where(columns: Sequence[Column]) -> str:
    """The tasks of some columns: `q = 0.1, 0.3 and 0.5`."""
    labels = [column.task.label for column in columns]
    rates = [label for label in labels if label.startswith("q = ")]
    shortened = [label.removeprefix("q = ") if label in rates[1:] else label for label in labels]
    return enumerated(shortened)


def names(columns: Sequence[Column]) -> str:
    """The tasks of some columns with their data: `SVHN (q = 0.5) and CIFAR-100 (q = 0.05 and 0.1)`."""
    by_data: dict[str, list[Column]] = {}
    for column in columns:
        by_data.setdefault(column.task.data_label, []).append(column)
    return enumerated([f"{data} ({where(mine)})" for data, mine in by_data.items()])


def uniform(columns: Sequence[Column]) -> list[Column]:
    """The columns with uniform candidate sets."""
    return [column for column in columns if column.task.kind is None]


def won(columns: Sequence[Column], method: str) -> list[Column]:
    """The columns in which a method or one of its forms is first."""
    return [column for column in columns if column.first.label.split(", ")[0] == method]


def winners(columns: Sequence[Column], *, by_name: bool = False) -> str:
    """Which method is first on which task: `CC at q = 0.1 and 0.7, and PRODEN at q = 0.3`."""
    told = []
    for name in dict.fromkeys(column.first.name for column in columns):
        mine = [column for column in columns if column.first.name == name]
        told.append(f"{name} on {names(mine)}" if by_name else f"{name} at {where(mine)}")
    return ", and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else told[0]


def close(columns: Sequence[Column]) -> list[Column]:
    """The columns in which the lead of the best is smaller than the standard deviation over seeds."""
    return [column for column in columns if column.close]


def means(columns: Sequence[Column], label: str) -> list[float]:
    """The mean accuracy of a method on each task, in %."""
    return [column[label].mean for column in columns]


def gaps(columns: Sequence[Column], ours: str, theirs: str) -> list[float]:
    """How far a method is ahead of another on each task, in points."""
    return [column[ours].mean - column[theirs].mean for column in columns]


def leads(columns: Sequence[Column], label: str) -> list[float]:
    """How far the best is ahead of a method on each task, in points."""
    return [column.first.mean - column[label].mean for column in columns]


def mean_leads(columns: Sequence[Column], ours: str, theirs: str, *, prior: bool = False) -> list[float]:
    """How far a method is ahead of another on each task, in points, averaged over the seeds that both have finished.

    With `prior`, the other method uses the set prior. Tasks on which they have no seed in common are left out.
    """
    found = []
    for column in columns:
        other = column.with_prior(theirs) if prior else theirs
        if column.has(ours) and other is not None and column.has(other) and column.lead_by_seed(ours, other):
            found.append(statistics.mean(column.lead_by_seed(ours, other)))
    return found


def gains(shorter: Sequence[Column], longer: Sequence[Column], label: str) -> list[float]:
    """The gain of a method from longer runs on each task, in points."""
    return [b[label].mean - a[label].mean for a, b in zip(shorter, longer, strict=True)]


def ratios(columns: Sequence[Column], ours: str, theirs: str) -> list[float]:
    """The ratio of step times of two methods on each task."""
    return [column[ours].step_seconds / column[theirs].step_seconds for column in columns]


def finished(columns: Sequence[Column], label: str) -> bool:
    """Whether all runs of a method are finished on every task."""
    return all(column.has(label) and column[label].outcome.complete for column in columns)


def average(columns: Sequence[Column], label: str) -> float:
    """The mean accuracy of a method over some tasks, in %."""
    return statistics.mean(means(columns, label))
