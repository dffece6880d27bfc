"""The small tables in docs/results.md, one per family of tasks: all methods and forms of PaPi with equal compute."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from papi.experiments import SUITES, tables
from papi.experiments.cpu import BUDGET, BY_CLASS, BY_LOOKS, CIFAR10, DEFAULT, FORMS, INSTANCE, MANY, RATES, SVHN
from papi.experiments.paper import PAPI
from papi.experiments.rendering import markdown
from papi.experiments.results import Results
from papi.experiments.suites import Entry, Table, Task
from papi.experiments.tables import Sheet
from recipes.measured import Column, default_form
from recipes.page import finished_table

_SUITES = ("budget", "forms", "uniform", "instance-dependent", "many-classes", "other-data")
FAMILIES = {
    "uniform": RATES,
    "class and instance": (INSTANCE, BY_LOOKS, *BY_CLASS),
    "colour": (CIFAR10, SVHN, *MANY),
}


def entries() -> tuple[Entry, ...]:
    """The ceiling, the forms of PaPi, its default, and every published method compared with equal compute."""
    forms = (*FORMS, DEFAULT)
    others = dict.fromkeys(entry for table in _tables() for entry in table.entries if entry.method != PAPI.method)
    published = [entry for entry in others if "set_prior" not in entry.settings]
    return tuple(sorted((*forms, *published), key=lambda entry: not entry.ceiling))


def _tables() -> Iterator[Table]:
    yield from (table for name in _SUITES for table in SUITES["cpu"][name].tables if table.units == BUDGET)


def family_table(tasks: Sequence[Task], results: Results) -> Table:
    """The finished part of a family with equal compute. The paper's form of PaPi is labelled as such."""
    table = finished_table(Table("equal compute", entries(), tuple(tasks), units=BUDGET), results)
    return replace(table, entries=tuple(map(named, table.entries)))


def named(entry: Entry) -> Entry:
    """The entry, with a label that distinguishes the paper's form of PaPi from the others."""
    return replace(entry, label="PaPi, paper's form") if entry == PAPI else entry


def compact(table: Table, results: Results, *, name_data: bool = False) -> str:
    """A Markdown table of methods by tasks, without title and rows of differences."""
    columns = [_finished(table, task, results) for task in table.tasks]
    rows = tuple((_row_label(entry), *(found[entry].text() for found in columns)) for entry in table.entries)
    best = [tables.ranking(found)[:1] for found in columns]
    bold = {
        (n, place + 1) for n, entry in enumerate(table.entries) for place, first in enumerate(best) if entry in first
    }
    header = ("Method", *(task.name if name_data else task.label for task in table.tasks))
    return markdown(Sheet("", header, rows, frozenset(bold))).split("\n\n", 1)[1].strip()


def _finished(table: Table, task: Task, results: Results) -> tables.Column:
    """The finished runs on a task, out of the seeds that the suites ask for."""
    return {
        entry: tables.outcome(replace(table, seeds=_seeds(entry, task) or table.seeds), entry, task, results)
        for entry in table.entries
    }


def _seeds(entry: Entry, task: Task) -> tuple[int, ...]:
    asked = (table for table in _tables() if task in table.tasks and entry in map(named, table.entries))
    return tuple(sorted({seed for table in asked for seed in table.seeds}))


def _row_label(entry: Entry) -> str:
    return f"{entry.label} (default)" if entry.label == default_form() else entry.label


def columns(name: str, results: Results) -> list[Column]:
    """The columns of a family's table, for use in sentences."""
    table = family_table(FAMILIES[name], results)
    return [Column(name, table, task, results) for task in table.tasks]


def family(name: str, results: Results) -> str:
    """The table of a family, or nothing if it has no runs."""
    table = family_table(FAMILIES[name], results)
    return compact(table, results, name_data=name == "colour") if table.tasks else ""


def real_world(results: Results) -> str:
    """The results on feature tables, without published numbers."""
    table = finished_table(replace(SUITES["cpu"]["real-world"].tables[0], published={}), results)
    return compact(replace(table, entries=tuple(map(named, table.entries))), results)
