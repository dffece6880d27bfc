"""Implements `papi bench`: list suites, train their cells, print tables, save figures."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from joblib import cpu_count
from rich.table import Table

from papi.cli.bench_grid import train_cells
from papi.cli.bench_options import Output, Training
from papi.cli.terminal import make_console
from papi.data.known.sources import SOURCES
from papi.errors import UserError
from papi.experiments import SUITES, cells, find_suites, rendering, tables
from papi.experiments.estimate import GPU_FLOPS, gpu_hours, seconds_here
from papi.experiments.figures import save_all
from papi.experiments.grid import Cell, make_cells
from papi.experiments.results import Results, read_runs
from papi.experiments.suites import Scale, Suite


def run_suites(suite: str | None, output: Output, training: Training) -> None:
    """Train the unfinished cells of one or all suites and show the results. Exit with code 1 if any cell failed."""
    results = read_runs(training.out)
    if output.list_suites or suite is None:
        print_suites(output.scale, results)
        return
    scale = output.scale or "cpu"
    suites = find_suites(suite, scale)
    if output.dry_run:
        print_commands(suites, training, results)
        return
    complete = True
    if output.tables_only:
        missing = [cell.data for cell in _cells(suites, training, training.data_dir) if cell.key not in results]
        for hint in _absent(missing, training.data_dir).values():
            make_console(stderr=True).print(f"Not on this machine: {hint}.", soft_wrap=True)
    else:
        complete = train_missing(suites, training, results)
        results = read_runs(training.out)
    for each in suites:
        _print_tables(each, scale, results, output.format)
        if output.figures is not None:
            _save_figures(each, results, output.figures)
    if not complete:
        sys.exit(1)


def print_commands(suites: Sequence[Suite], training: Training, results: Results) -> None:
    """Print the `papi train` command of every cell; finished cells are commented out."""
    for cell in _cells(suites, training, training.data_dir):
        command = shlex.join(["papi", "train", *cell.arguments, "--out", str(training.out / cell.folder.name)])
        print(f"# done: {command}" if cell.key in results else command)


def train_missing(suites: Sequence[Suite], training: Training, results: Results) -> bool:
    """Train all unfinished cells and show the progress. Return whether all of them succeeded.

    Cells whose data are not on this machine are skipped, and the missing data are listed. A signal ends the process
    after the runs have saved.
    """
    todo = [cell for cell in _cells(suites, training, training.data_dir.resolve()) if cell.key not in results]
    absent = _absent([cell.data for cell in todo], training.data_dir)
    if todo and all(cell.data in absent for cell in todo) and not results:
        raise UserError(f"the data are not on this machine: {'; '.join(absent.values())}.")
    console = make_console()
    for hint in absent.values():
        console.print(f"Skipped, because the data are not on this machine: {hint}.", soft_wrap=True)
    here = [cell for cell in todo if cell.data not in absent]
    return not train_cells(here, training.jobs, training.backend, training.address)


def _absent(data: Sequence[str], data_dir: Path) -> dict[str, str]:
    """Return how to get the known datasets that are not on this machine. `papi train` checks your own data."""
    known = {name: SOURCES[name] for name in data if name in SOURCES}
    return {
        name: f"{name}, {source.hint(name, data_dir)}"
        for name, source in known.items()
        if source.find(data_dir) is None
    }


def _cells(suites: Sequence[Suite], training: Training, data_dir: Path) -> list[Cell]:
    """Return one cell for each distinct run. The machines of a cluster need an absolute `data_dir`."""
    share = max(1, cpu_count() // (training.jobs or 1)) if training.backend == "local" else 1
    configs = [config for suite in suites for config in suite.cells()]
    here = [replace(config, data_dir=data_dir, device=training.device) for config in configs]
    return make_cells(here, training.out, training.threads or share)


def _print_tables(suite: Suite, scale: Scale, results: Results, format: str) -> None:
    if format == "csv":
        print(rendering.comma_separated(suite, results), end="")
        return
    sheets = tables.sheets(suite, results, detailed=scale == "cpu")
    if format == "terminal":
        console = make_console()
        console.print(f"{suite.title} (papi bench {suite.name} --scale {scale})", style="bold")
        console.print(tables.RULE)
        for sheet in sheets:
            console.print(rendering.terminal(sheet))
        return
    if format == "markdown":
        print(f"{tables.RULE}\n")
    print("\n".join((rendering.markdown if format == "markdown" else rendering.latex)(sheet) for sheet in sheets))


def _save_figures(suite: Suite, results: Results, folder: Path) -> None:
    """Save the figures that have curves. Messages go to standard error, so that standard output has only tables."""
    console = make_console(stderr=True)
    try:
        saved = save_all(suite, results, folder)
    except OSError as error:
        raise UserError(
            f"the figures cannot be written to {folder} ({error.strerror}): choose another folder with --figures."
        ) from error
    for _, file in saved:
        console.print(f"{file} and {file.with_suffix('.png').name}", soft_wrap=True)
    if len(saved) < len(suite.figures):
        console.print(
            f"{suite.name}: {len(suite.figures) - len(saved)} of {len(suite.figures)} figures have no finished run yet."
        )


def print_suites(scale: Scale | None, results: Results) -> None:
    """Print every suite with the number of finished runs and the estimated time for the others."""
    console = make_console()
    for each, suites in SUITES.items():
        if scale not in (None, each):
            continue
        table = Table("suite", "runs", "done", "time here", "time on a GPU", "experiment", title=f"--scale {each}")
        for suite in suites.values():
            runs = {cells.key(config): config for config in suite.cells()}
            left = [config for key, config in runs.items() if key not in results]
            on_gpu = _duration(gpu_hours(left)) if each == "paper" else "–"
            here = _duration(seconds_here(left) / 3600)
            table.add_row(suite.name, str(len(runs)), str(len(runs) - len(left)), here, on_gpu, suite.title)
        console.print(table)
    console.print(
        "Times are estimates for the remaining runs: here from a measured step, one run at a time; on a GPU from the "
        f"number of operations at {GPU_FLOPS / 1e12:.0f} TFLOP/s. A run that several suites share is counted in each "
        "and trained once."
    )
    console.print("`papi bench NAME --dry-run` prints the commands; `papi bench NAME` runs them.")


def _duration(hours: float) -> str:
    days = hours / 24
    return f"{hours:.1f} h" if days < 4 else f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"
