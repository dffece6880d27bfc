"""`papi bench`: the paper's tables and figures, and our own, each by one command."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter
from rich.table import Table

from papi.cli.bench_progress import Board
from papi.cli.options import SWITCH, WHOLE
from papi.cli.terminal import make_console, printable
from papi.errors import UserError

if TYPE_CHECKING:
    from papi.experiments.grid import Cell
    from papi.experiments.results import Results
    from papi.experiments.suites import Scale, Suite

_WHAT = Parameter(group=Group("What to show", sort_key=1))
_RUNS = Parameter(group=Group("Runs", sort_key=2))
_WHERE = Parameter(group=Group("Where to train", sort_key=3))


@dataclass(frozen=True)
class Output:
    """What to show of a suite."""

    scale: Annotated[Literal["cpu", "paper"] | None, _WHAT] = None
    """cpu: small network, 10,000 images, minutes a run. paper: the released settings, for GPUs. [default: cpu]"""
    list_suites: Annotated[bool, _WHAT, SWITCH, Parameter(name="--list")] = False
    """List all suites with their number of runs, how many are done, and the time the rest takes."""
    dry_run: Annotated[bool, _WHAT, SWITCH] = False
    """Print the command of every cell, as a comment where it is done, and train nothing."""
    tables_only: Annotated[bool, _WHAT, SWITCH] = False
    """Train nothing: show what is finished."""
    format: Annotated[Literal["terminal", "markdown", "latex", "csv"], _WHAT] = "terminal"
    """How tables are printed."""
    figures: Annotated[Path | None, _WHAT] = None
    """Save the figures of the suite in this folder, as SVG and PNG."""


@dataclass(frozen=True)
class Training:
    """Where the runs of a grid are kept, and where and how many at a time they are trained."""

    out: Annotated[Path, _RUNS] = Path("runs/bench")
    """Folder of the runs. Finished runs in it are found by their settings, whatever their folders are called."""
    data_dir: Annotated[Path, _RUNS] = Path("data")
    """Folder of the datasets."""
    jobs: Annotated[int | None, _WHERE, WHOLE] = None
    """Runs at a time. [default: 1 on this machine; on a cluster, as many as it takes]"""
    threads: Annotated[int | None, _WHERE, WHOLE] = None
    """CPU threads of each run. [default: the cores divided by the jobs; on a cluster 1]"""
    device: Annotated[str, _WHERE] = "auto"
    """cpu, cuda …, as for `papi train`."""
    backend: Annotated[Literal["local", "dask", "ray"], _WHERE] = "local"
    """local, or an existing cluster whose machines see the same folders: dask, ray."""
    address: Annotated[str | None, _WHERE] = None
    """The address of the cluster's scheduler."""

    def __post_init__(self) -> None:
        for name, number in (("--jobs", self.jobs), ("--threads", self.threads)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be 1 or more; got {number}.")


_OUTPUT, _TRAINING = Output(), Training()


def bench(
    suite: str | None = None,
    /,
    *,
    output: Annotated[Output, Parameter(name="*")] = _OUTPUT,
    training: Annotated[Training, Parameter(name="*")] = _TRAINING,
) -> None:
    """Run an experiment of the paper or one of ours, and show its tables and figures.

    Parameters
    ----------
    suite
        The name of an experiment, `all`, or `package.module:SUITE` for one of your own.
    """
    from papi.experiments import find_suites  # torch takes seconds to load: not before
    from papi.experiments.results import read_runs

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
    if not output.tables_only:
        complete = train_missing(suites, training, results)
        results = read_runs(training.out)
    for each in suites:
        _print_tables(each, scale, results, output.format)
        if output.figures is not None:
            _save_figures(each, results, output.figures)
    if not complete:
        sys.exit(1)


def print_commands(suites: "Sequence[Suite]", training: Training, results: "Results") -> None:
    """The `papi train` command of every cell, as a comment where there is a result."""
    for cell in _cells(suites, training, training.data_dir):
        command = shlex.join(["papi", "train", *cell.arguments, "--out", str(training.out / cell.folder.name)])
        print(f"# done: {command}" if cell.key in results else command)


def train_missing(suites: "Sequence[Suite]", training: Training, results: "Results") -> bool:
    """Train all cells without a result and show the progress. Returns whether every cell was finished.

    A signal ends the process, once the runs have saved.
    """
    from papi.experiments.grid import Grid

    todo = [cell for cell in _cells(suites, training, training.data_dir.resolve()) if cell.key not in results]
    if not todo:
        return True
    console = make_console()
    board = Board(todo)
    jobs = training.jobs or (1 if training.backend == "local" else None)
    grid = Grid(jobs=jobs, backend=training.backend, address=training.address)
    with board.shown(console), suppress(KeyboardInterrupt):  # how a grid on a cluster stops
        for ended in grid.run(todo):
            board.end(ended)
    if grid.stopped_by is not None:
        console.print(f"Stopped with {len(board.finished())} of {len(todo)} cells trained. The same command continues.")
        sys.exit(128 + grid.stopped_by)
    for ended in board.failed:
        console.print(f"Failed: {ended.cell.folder.name}: {printable(ended.error)}", soft_wrap=True)
    return not board.failed


def _cells(suites: "Sequence[Suite]", training: Training, data_dir: Path) -> "list[Cell]":
    """One cell for each different run. Machines of a cluster need an absolute `data_dir`."""
    from joblib import cpu_count

    from papi.experiments.grid import make_cells

    share = max(1, cpu_count() // (training.jobs or 1)) if training.backend == "local" else 1
    configs = [config for suite in suites for config in suite.cells()]
    here = [replace(config, data_dir=data_dir, device=training.device) for config in configs]
    return make_cells(here, training.out, training.threads or share)


def _print_tables(suite: "Suite", scale: "Scale", results: "Results", format: str) -> None:
    from papi.experiments import rendering, tables

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


def _save_figures(suite: "Suite", results: "Results", folder: Path) -> None:
    """Figures without curves are left out. Standard output stays free for the tables."""
    from papi.experiments.figures import save_all

    console = make_console(stderr=True)
    saved = save_all(suite, results, folder)
    for _, file in saved:
        console.print(f"{file} and {file.with_suffix('.png').name}", soft_wrap=True)
    if len(saved) < len(suite.figures):
        console.print(
            f"{suite.name}: {len(suite.figures) - len(saved)} of {len(suite.figures)} figures have no run yet."
        )


def print_suites(scale: "Scale | None", results: "Results") -> None:
    """Every suite, how many of its runs are done, and how long the rest takes."""
    from papi.experiments import SUITES, cells
    from papi.experiments.estimate import GPU_FLOPS, gpu_hours, seconds_here

    console = make_console()
    for each, suites in SUITES.items():
        if scale not in (None, each):
            continue
        table = Table("suite", "runs", "done", "left here", "left on a GPU", "what it is", title=f"--scale {each}")
        for suite in suites.values():
            runs = {cells.key(config): config for config in suite.cells()}
            left = [config for key, config in runs.items() if key not in results]
            on_gpu = _duration(gpu_hours(left)) if each == "paper" else "–"
            here = _duration(seconds_here(left) / 3600)
            table.add_row(suite.name, str(len(runs)), str(len(runs) - len(left)), here, on_gpu, suite.title)
        console.print(table)
    console.print(
        "Time here: from a measured step, one run at a time. On a GPU: from the number of operations, at "
        f"{GPU_FLOPS / 1e12:.0f} TFLOP/s. Runs that several suites need are counted in each and trained once."
    )
    console.print("`papi bench NAME --dry-run` prints the commands; `papi bench NAME` runs them.")


def _duration(hours: float) -> str:
    days = hours / 24
    return f"{hours:.1f} h" if days < 4 else f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"
