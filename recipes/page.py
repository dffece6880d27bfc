"""The generated parts of a results page, between two marks for each suite. The text around them stays."""

from pathlib import Path

from papi.experiments import cells, figures, tables
from papi.experiments.rendering import markdown
from papi.experiments.results import Result, Results
from papi.experiments.suites import Scale, Suite


def marks(suite: Suite, scale: Scale) -> tuple[str, str]:
    """The comments before and after the part of a suite."""
    name = f"papi bench {suite.name} --scale {scale}"
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def write(page: Path, suite: Suite, scale: Scale, results: Results) -> None:
    """Write the tables and figures of a suite into the page; without marks they go to the end, under their title."""
    begin, end = marks(suite, scale)
    text = page.read_text() if page.exists() else "# Results\n"
    if begin not in text or end not in text:
        text = f"{text.rstrip()}\n\n## {suite.title}\n\n{begin}\n{end}\n"
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    parts = [_origin(suite, scale, results), *_tables(suite, scale, results), *_pictures(page, suite, results)]
    part = "\n".join(parts)
    page.write_text(f"{before}{begin}\n\n{part}\n{end}{after}")


def _origin(suite: Suite, scale: Scale, results: Results) -> str:
    """The command, how many of its runs are finished, and what they were made with."""
    keys = {cells.key(config) for config in suite.cells()}
    done = [results[key] for key in keys if key in results]
    told = f"`papi bench {suite.name} --scale {scale}`: {len(done)} of {len(keys)} runs are finished. {tables.RULE}"
    return f"{told}{_made(done)}\n"


def _made(done: list[Result]) -> str:
    if not done:
        return ""
    hours = sum(run.values.get("cpu_seconds", run.values["seconds"]) for run in done) / 3600
    versions = {f"{name} {value}" for run in done for name, value in run.made.versions.items()}
    commits = {run.made.commit for run in done if run.made.commit}
    dates = {run.made.date for run in done}
    facts = [f"{hours:.1f} hours of training", ", ".join(sorted(versions))]
    threads = {str(run.made.threads) for run in done if run.made.threads}
    facts += [f"threads: {', '.join(sorted(threads))}"] if threads else []
    facts += [f"commit {', '.join(sorted(commits))}"] if commits else []
    facts += [" to ".join(sorted({min(dates), max(dates)}))]
    return f" Made with: {'; '.join(facts)}."


def _tables(suite: Suite, scale: Scale, results: Results) -> list[str]:
    """The overviews, then the tables behind them in a part that readers can unfold."""
    made = [markdown(sheet) for sheet in tables.sheets(suite, results, detailed=False)]
    if scale == "paper" or suite.costs:
        return made
    more = [markdown(sheet) for sheet in tables.details(suite, results)]
    summary = "Task by task: differences seed by seed and to the ceiling, epochs, encoder units, CPU seconds"
    return [*made, f"<details>\n<summary>{summary}</summary>\n", *more, "</details>\n"] if more else made


def _pictures(page: Path, suite: Suite, results: Results) -> list[str]:
    """A link to each figure; the files go into `results/` beside the page."""
    saved = figures.save_all(suite, results, page.parent / "results")
    return [
        f"![{figure.title}](results/{file.name})\n\n{figure.title}: mean and range over seeds.\n"
        for figure, file in saved
    ]
