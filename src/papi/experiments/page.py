"""The generated parts of `docs/results.md`: between two marks for each suite. What people wrote around them stays."""

from pathlib import Path

from papi.experiments import cells, figures, tables
from papi.experiments.rendering import markdown
from papi.experiments.rows import Result, Results
from papi.experiments.suites import Scale, Suite


def marks(suite: Suite, scale: Scale) -> tuple[str, str]:
    name = f"papi bench {suite.name} --scale {scale}"
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def write(page: Path, suite: Suite, scale: Scale, results: Results) -> None:
    """Put tables and figures into the page; a suite without marks comes at its end, under its title."""
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
    """The command, how much of it is done, and what the runs were made with."""
    keys = {cells.key(config) for config in suite.cells()}
    done = [results[key] for key in keys if key in results]
    told = f"`papi bench {suite.name} --scale {scale}`: {len(done)} of {len(keys)} runs are finished. {tables.RULE}"
    return f"{told}{_made(done)}\n"


def _made(done: list[Result]) -> str:
    if not done:
        return ""
    hours = sum(run.values.get("cpu_seconds", run.values["seconds"]) for run in done) / 3600
    versions = {f"{name} {value}" for run in done for name, value in run.made["versions"].items()}
    commits = {run.made["commit"] for run in done if "commit" in run.made}
    dates = {run.made["date"] for run in done if "date" in run.made}
    facts = [f"{hours:.1f} hours of training", ", ".join(sorted(versions))]
    facts += [f"threads: {', '.join(sorted({str(run.made['threads']) for run in done}))}"]
    facts += [f"commit {', '.join(sorted(commits))}"] if commits else []
    facts += [" to ".join(sorted({min(dates), max(dates)}))] if dates else []
    return f" Made with: {'; '.join(facts)}."


def _tables(suite: Suite, scale: Scale, results: Results) -> list[str]:
    """Overviews in sight; what stands behind them folded."""
    made = [markdown(sheet) for sheet in tables.sheets(suite, results, detailed=False)]
    if scale == "paper" or suite.costs:
        return made
    more = [markdown(sheet) for sheet in tables.details(suite, results)]
    summary = "Task by task: differences seed by seed and to the ceiling, epochs, encoder units, CPU seconds"
    return [*made, f"<details>\n<summary>{summary}</summary>\n", *more, "</details>\n"] if more else made


def _pictures(page: Path, suite: Suite, results: Results) -> list[str]:
    links = []
    for figure in suite.figures:
        drawing = figures.draw(figure, results)
        if drawing is not None:
            path = Path("results") / f"{suite.name}-{figure.name}.svg"
            figures.save(drawing, page.parent / path)
            links.append(f"![{figure.title}]({path.as_posix()})\n\n{figure.title}: mean and range over seeds.\n")
    return links
