"""Builds tables from results: mean ± standard deviation, differences by seed, and the paper's numbers to compare."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from papi.experiments import cells
from papi.experiments.compute import units
from papi.experiments.results import Result, Results
from papi.experiments.suites import Entry, Published, Suite, Table, Task

RULE = (
    "Test accuracy in %, mean ± standard deviation over seeds, of the last epoch: nothing is chosen on test images. "
    "Best in bold. (1/3) marks means of unfinished cells, – cells without a run."
)
NOTHING = "–"


@dataclass(frozen=True)
class Sheet:
    """A table before rendering: its texts, and which of them are bold."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Outcome:
    """The finished runs of an entry on a task, by seed."""

    runs: Mapping[int, Result]
    wanted: int
    published: Published | None = None
    published_by: str = "paper"

    @property
    def accuracies(self) -> dict[int, float]:
        """Test accuracy in %, by seed."""
        return {seed: 100 * run.values["test_accuracy"] for seed, run in self.runs.items()}

    @property
    def complete(self) -> bool:
        """Whether every seed has a run."""
        return len(self.runs) == self.wanted

    @property
    def mean(self) -> float:
        """Mean test accuracy in %."""
        return statistics.mean(self.accuracies.values())

    def text(self) -> str:
        """The text of a table cell: mean and standard deviation, missing seeds, and the published number."""
        told = spread(list(self.accuracies.values())) if self.runs else NOTHING
        if self.runs and not self.complete:
            told += f" ({len(self.runs)}/{self.wanted})"
        if self.published is None:
            return told
        difference = f", {self.mean - self.published.mean:+.2f}" if self.runs else ""
        return f"{told} ({self.published_by} {self.published.mean:.2f} ± {self.published.std:.2f}{difference})"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation; only the mean for a single value."""
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.pstdev(values):.2f}"


def outcome(table: Table, entry: Entry, task: Task, results: Results) -> Outcome:
    """The finished runs of one cell of a table."""
    keys = {seed: cells.key(table.config(entry, task, seed)) for seed in table.seeds}
    runs = {seed: results[key] for seed, key in keys.items() if key in results}
    published = table.published.get((entry.label, task.data_label, task.label))
    return Outcome(runs, len(table.seeds), published, table.published_by)


Column = dict[Entry, Outcome]  # one task of a table


def column(table: Table, task: Task, results: Results) -> Column:
    """The finished runs of all entries on one task."""
    return {entry: outcome(table, entry, task, results) for entry in table.entries}


def ranking(found: Column) -> list[Entry]:
    """Entries, best first, without ceilings. Those with fewer runs than others are left out: chance could decide."""
    rivals = {entry: len(each.runs) for entry, each in found.items() if each.runs and not entry.ceiling}
    return sorted((entry for entry in rivals if rivals[entry] == max(rivals.values())), key=lambda e: -found[e].mean)


def overviews(table: Table, results: Results) -> list[Sheet]:
    """Methods by tasks, one sheet per dataset. The last rows compare the best with the runner-up and the ceiling."""
    sheets = []
    for data in dict.fromkeys(task.data_label for task in table.tasks):
        tasks = [task for task in table.tasks if task.data_label == data]
        columns = [column(table, task, results) for task in tasks]
        rows = [(entry.label, *(found[entry].text() for found in columns)) for entry in table.entries]
        best = [ranking(found)[:1] for found in columns]
        bold = {
            (number, place + 1)
            for number, entry in enumerate(table.entries)
            for place, first in enumerate(best)
            if entry in first
        }
        rows.append(("Best minus runner-up, by seed", *map(_lead, columns)))
        if any(entry.ceiling for entry in table.entries):
            rows.append(("Best minus ceiling", *map(_below_ceiling, columns)))
        header = ("Method", *(task.label for task in tasks))
        sheets.append(Sheet(f"{data}: {table.title}", header, tuple(rows), frozenset(bold)))
    return sheets


def _lead(found: Column) -> str:
    ranked = ranking(found)
    if len(ranked) < 2:
        return NOTHING
    return f"{_by_seed(found[ranked[0]], found[ranked[1]])} ({ranked[0].label} − {ranked[1].label})"


def _below_ceiling(found: Column) -> str:
    ranked = ranking(found)
    return to_ceiling(found, ranked[0]) if ranked else NOTHING


def to_ceiling(found: Column, entry: Entry) -> str:
    """Mean difference from the ceiling over the same seeds."""
    ceiling = next((each for other, each in found.items() if other.ceiling), None)
    if ceiling is None or entry.ceiling:
        return ""
    differences = _differences(found[entry], ceiling)
    return f"{statistics.mean(differences):+.2f}" if differences else NOTHING


def _differences(ours: Outcome, theirs: Outcome) -> list[float]:
    a, b = ours.accuracies, theirs.accuracies
    return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]


def _by_seed(ours: Outcome, theirs: Outcome) -> str:
    return ", ".join(f"{difference:+.2f}" for difference in _differences(ours, theirs)) or NOTHING


def to_best_other(found: Column, entry: Entry) -> str:
    """Difference from the best other entry by seed: the lead of the best entry, or how far others are behind it."""
    others = [other for other in ranking(found) if other != entry]
    return NOTHING if entry.ceiling or not others else _by_seed(found[entry], found[others[0]])


def details(suite: Suite, results: Results) -> list[Sheet]:
    """One sheet per task, with its comparisons (equal epochs, equal compute) side by side."""
    sheets = []
    for task in dict.fromkeys(task for table in suite.tables for task in table.tasks):
        tables = [table for table in suite.tables if task in table.tasks]
        columns = [column(table, task, results) for table in tables]
        processors = {run.made.processor for found in columns for each in found.values() for run in each.runs.values()}
        entries = list(dict.fromkeys(entry for table in tables for entry in table.entries))
        header = ["Method", "Units"]
        for table in tables:
            header += [f"{table.title}: epochs", "accuracy", "to the best other, by seed", "to the ceiling", "CPU s"]
        rows, bold = [], set()
        for number, entry in enumerate(entries):
            row = [entry.label, str(units(entry.method, entry.settings))]
            for table, found in zip(tables, columns, strict=True):
                if ranking(found)[:1] == [entry]:
                    bold.add((number, len(row) + 1))
                row += _detail(table, found, entry, len(processors) > 1) if entry in found else [""] * 5
            rows.append(tuple(row))
        sheets.append(Sheet(task.name, tuple(header), tuple(rows), frozenset(bold)))
    return [_without_empty(sheet) for sheet in sheets]


def _detail(table: Table, found: Column, entry: Entry, several_processors: bool) -> list[str]:
    each = found[entry]
    best, spent = to_best_other(found, entry), _cpu_seconds(each, several_processors)
    return [str(table.length(entry) or ""), each.text(), best, to_ceiling(found, entry), spent]


def _cpu_seconds(each: Outcome, several_processors: bool) -> str:
    """The mean for each kind of processor, named if there are several, because their speeds differ."""
    times: dict[str, list[float]] = {}
    for run in each.runs.values():
        if "cpu_seconds" in run.values:
            times.setdefault(run.made.processor, []).append(run.values["cpu_seconds"])
    means = {kind: f"{statistics.mean(spent):.0f}" for kind, spent in sorted(times.items())}
    told = [f"{mean} ({kind})" if several_processors else mean for kind, mean in means.items()]
    return ", ".join(told) or NOTHING


def _without_empty(sheet: Sheet) -> Sheet:
    """Drop empty columns, such as differences from a ceiling that was not trained."""
    kept = [place for place in range(len(sheet.header)) if any(row[place] for row in sheet.rows)]
    return Sheet(
        sheet.title,
        tuple(sheet.header[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in sheet.rows),
        frozenset((row, kept.index(place)) for row, place in sheet.bold if place in kept),
    )


def costs(table: Table, results: Results) -> list[Sheet]:
    """CPU seconds per step and peak memory, by batch size."""
    sheets = []
    for title, value in (("CPU seconds a step", _step_seconds), ("peak memory (MB)", _memory)):
        rows = []
        for entry in table.entries:
            found = [list(outcome(table, entry, task, results).runs.values()) for task in table.tasks]
            rows.append((entry.label, *(value(runs) for runs in found)))
        header = ("Method", *(task.label for task in table.tasks))
        sheets.append(Sheet(f"{table.tasks[0].data_label}: {title}", header, tuple(rows)))
    return sheets


def _step_seconds(runs: Sequence[Result]) -> str:
    known = [run.values["cpu_seconds"] / run.steps for run in runs if "cpu_seconds" in run.values]
    return f"{statistics.mean(known):.4f}" if known else NOTHING


def _memory(runs: Sequence[Result]) -> str:
    known = [run.values["peak_memory"] / 1e6 for run in runs if "peak_memory" in run.values]
    return f"{statistics.mean(known):.0f}" if known else NOTHING


def sheets(suite: Suite, results: Results, *, detailed: bool) -> list[Sheet]:
    """All tables of a suite. `detailed` adds one sheet per task, with differences, epochs and CPU time."""
    made = [sheet for table in suite.tables for sheet in overviews(table, results)]
    if suite.costs:
        return made + [sheet for table in suite.tables for sheet in costs(table, results)]
    return made + details(suite, results) if detailed else made
