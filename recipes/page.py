"""The generated parts of a suite's page: its command, its tables and its figures.

Rows and columns without any run are left out of the tables and listed in a sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from papi.experiments import cells, figures, tables
from papi.experiments.rendering import markdown
from papi.experiments.results import Result, Results
from papi.experiments.suites import Entry, Scale, Suite, Table, Task
from recipes.measured import cpu_hours


@dataclass(frozen=True)
class Parts:
    """The generated parts of a suite's page."""

    title: str
    origin: str
    tables: str
    details: str
    figures: str


def parts(suite: Suite, scale: Scale, results: Results, folder: Path) -> Parts:
    """Generate the parts of a suite's page. Figures are written to the folder of the page."""
    run = finished(suite, results)
    made = [markdown(sheet) for sheet in tables.sheets(run, results, detailed=False)]
    return Parts(suite.title, _origin(suite, scale, results), "\n".join(made), _details(suite, scale, results),
                 _pictures(folder, suite, results))  # fmt: skip


def finished(suite: Suite, results: Results) -> Suite:
    """The suite without tables, rows and columns that have no runs."""
    kept = [finished_table(table, results) for table in suite.tables]
    return replace(suite, tables=tuple(table for table in kept if table.tasks))


def finished_table(table: Table, results: Results) -> Table:
    """The table without rows and columns that have no runs. A column with only the ceiling is dropped as well."""
    columns = {task: tables.column(table, task, results) for task in table.tasks}
    tasks = [task for task, found in columns.items() if any(each.runs and not e.ceiling for e, each in found.items())]
    entries = [entry for entry in table.entries if any(columns[task][entry].runs for task in tasks)]
    return replace(table, tasks=tuple(tasks), entries=tuple(entries))


def _origin(suite: Suite, scale: Scale, results: Results) -> str:
    """The command, the number of finished runs, what is missing entirely, and the versions used for the runs."""
    keys = {cells.key(config) for config in suite.cells()}
    done = [results[key] for key in keys if key in results]
    command = f"`papi bench {suite.name}{' --scale paper' if scale == 'paper' else ''}`"
    told = f"{command}: {len(done)} of {len(keys)} runs are finished."
    rule = f" {tables.RULE}" if suite.tables else ""
    return f"{told}{rule}{_missing(suite, results)}{_made(done)}\n"


def _missing(suite: Suite, results: Results) -> str:
    run = finished(suite, results)
    titles = {table.title for table in run.tables}
    gone = [f"the table “{table.title}”" for table in suite.tables if table.title not in titles]
    tasks = [task.name for task in _tasks(suite.tables) if task not in _tasks(run.tables)]
    entries = [entry.label for entry in _entries(suite.tables) if entry not in _entries(run.tables)]
    missing = [*entries, *tasks, *dict.fromkeys(gone)]
    return f" Not run yet, and left out: {'; '.join(missing)}." if missing else ""


def _tasks(found: Sequence[Table]) -> dict[Task, None]:
    return dict.fromkeys(task for table in found for task in table.tasks)


def _entries(found: Sequence[Table]) -> dict[Entry, None]:
    return dict.fromkeys(entry for table in found for entry in table.entries)


def _made(done: list[Result]) -> str:
    if not done:
        return ""
    versions = {f"{name} {value}" for run in done for name, value in run.made.versions.items()}
    commits = {run.made.commit for run in done if run.made.commit}
    dates = {run.made.date for run in done}
    facts = [f"{cpu_hours(done):.1f} hours of training", ", ".join(sorted(versions))]
    threads = {str(run.made.threads) for run in done if run.made.threads}
    facts += [f"threads: {', '.join(sorted(threads))}"] if threads else []
    facts += [f"commit {', '.join(sorted(commits))}"] if commits else []
    facts += [" to ".join(sorted({min(dates), max(dates)}))]
    return f"\n\nMade with: {'; '.join(facts)}."


def _details(suite: Suite, scale: Scale, results: Results) -> str:
    """A table per task, in a collapsible section."""
    if scale == "paper" or suite.costs:
        return ""
    more = [
        markdown(sheet) for sheet in tables.details(replace(suite, tables=tuple(_by_task(suite, results))), results)
    ]
    summary = "Task by task: differences seed by seed and to the ceiling, epochs, encoder units, CPU seconds"
    return "\n".join([f"<details>\n<summary>{summary}</summary>\n", *more, "</details>\n"]) if more else ""


def _by_task(suite: Suite, results: Results) -> Iterator[Table]:
    """Every table once per task, with the rows that have runs on that task."""
    for table in suite.tables:
        for task in table.tasks:
            kept = finished_table(replace(table, tasks=(task,)), results)
            if kept.tasks:
                yield kept


def _pictures(folder: Path, suite: Suite, results: Results) -> str:
    """A link to each figure; the files are in the folder of the page."""
    saved = figures.save_all(suite, results, folder)
    return "\n".join(
        f"![{figure.title}]({file.name})\n\n{figure.title}: mean and range over seeds.\n" for figure, file in saved
    )
