"""`papi bench`: the paper's tables and figures, and our own, each by one command."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter
from rich.table import Table

from papi.cli.bench_progress import Board
from papi.cli.terminal import make_console, printable
from papi.config import WHOLE
from papi.errors import UserError

if TYPE_CHECKING:
    from papi.experiments.grid import Cell
    from papi.experiments.rows import Results
    from papi.experiments.suites import Scale, Suite

_WHAT = Parameter(group=Group("What to show", sort_key=1))
_RUNS = Parameter(group=Group("Runs", sort_key=2))
_WHERE = Parameter(group=Group("Where to train", sort_key=3))


def bench(
    suite: str | None = None,
    /,
    *,
    scale: Annotated[Literal["cpu", "paper"] | None, _WHAT] = None,
    list_suites: Annotated[bool, _WHAT, Parameter(name="--list", negative="")] = False,
    dry_run: Annotated[bool, _WHAT, Parameter(negative="")] = False,
    tables_only: Annotated[bool, _WHAT, Parameter(negative="")] = False,
    format: Annotated[Literal["terminal", "markdown", "latex", "csv"], _WHAT] = "terminal",
    write: Annotated[Path | None, _WHAT] = None,
    out: Annotated[Path, _RUNS] = Path("runs/bench"),
    adopt: Annotated[tuple[Path, ...], _RUNS, Parameter(negative="", consume_multiple=True)] = (),
    rows: Annotated[Path, _RUNS] = Path("docs/results"),
    commit: Annotated[str | None, _RUNS] = None,
    data_dir: Annotated[Path, _RUNS] = Path("data"),
    jobs: Annotated[int | None, _WHERE, WHOLE] = None,
    threads: Annotated[int | None, _WHERE, WHOLE] = None,
    device: Annotated[str, _WHERE] = "auto",
    backend: Annotated[Literal["local", "dask", "ray"], _WHERE] = "local",
    address: Annotated[str | None, _WHERE] = None,
) -> None:
    """Run an experiment of the paper, or of ours: all its methods, tasks and seeds, then its tables and figures.

    Each cell is a `papi train` in a folder of its own. Finished cells are never trained again, so the same command
    continues a grid that was stopped or killed. Start with `papi bench --list`.

    Parameters
    ----------
    suite
        The experiment; `all`; or `package.module:SUITE` for one of your own.
    scale
        cpu: small network, 10,000 images, minutes a run. paper: the released settings, for GPUs. [default: cpu]
    list_suites
        Show all suites with their runs, the time they take here, and what is done.
    dry_run
        Print the command of every cell, as a comment where it is done, and train nothing.
    tables_only
        Train nothing: show what is finished.
    format
        How tables are printed.
    write
        Put tables and figures into this page (docs/results.md), and the results they are made from into --rows.
    out
        Folder in which the runs lie.
    adopt
        Folders with finished runs made elsewhere: those with the settings of a cell count as it.
    rows
        Folder of results that are kept without their runs (*.jsonl): they count as done.
    commit
        The revision that adopted runs were made with, for the record.
    data_dir
        Folder in which datasets lie.
    jobs
        Runs at a time. [default: 1 on this machine; on a cluster, as many as it takes]
    threads
        CPU threads of each run. [default: the cores divided by the jobs; on a cluster 1]
    device
        cpu, cuda …, as for `papi train`.
    backend
        local, or an existing cluster whose machines see the same folders: dask, ray.
    address
        Where the scheduler of the cluster is.
    """
    for name, number in (("--jobs", jobs), ("--threads", threads)):
        if number is not None and number < 1:
            raise UserError(f"{name} must be 1 or more; got {number}.")
    for folder in adopt:
        if not folder.is_dir():
            raise UserError(f"--adopt {folder} is not a folder.")

    from papi.experiments import SUITES, find_suite  # torch takes seconds to load: not before
    from papi.experiments import rows as kept
    from papi.experiments.grid import make_cells

    folders = {out: None} | dict.fromkeys(adopt, commit)
    results = kept.collect(rows, folders)
    if list_suites or suite is None:
        _list(scale, results)
        return
    scale = scale or "cpu"
    suites = list(SUITES[scale].values()) if suite == "all" else [find_suite(suite, scale)]
    where = data_dir if dry_run else data_dir.resolve()  # other machines are in other folders
    configs = [replace(config, data_dir=where, device=device) for each in suites for config in each.cells()]
    cells = make_cells(configs, out, threads or _share(jobs, backend))
    if dry_run:
        for cell in cells:
            command = shlex.join(["papi", "train", *cell.arguments, "--out", str(out / cell.folder.name)])
            print(f"# done: {command}" if cell.key in results else command)
        return
    todo = [cell for cell in cells if cell.key not in results]
    complete = True
    if todo and not tables_only:
        complete = _train(todo, jobs or (1 if backend == "local" else None), backend, address)
        results = kept.collect(rows, folders)
    for each in suites:
        _show(each, scale, results, format)
        if write is not None:
            _write(each, scale, results, write, rows)
    if not complete:
        sys.exit(1)


def _share(jobs: int | None, backend: str) -> int:
    """Threads of each of so many runs."""
    import joblib  # type: ignore[import-untyped]

    return max(1, joblib.cpu_count() // (jobs or 1)) if backend == "local" else 1


def _train(todo: "list[Cell]", jobs: int | None, backend: Literal["local", "dask", "ray"], address: str | None) -> bool:
    """Train all cells with a table of how it goes; whether every one was finished."""
    from papi.experiments import grid

    console = make_console()
    board = Board(todo)
    with board.shown(console):
        try:
            for ended in grid.run(todo, jobs=jobs, backend=backend, address=address):
                board.end(ended)
        except KeyboardInterrupt:  # how a grid on a cluster stops
            pass
    stopped_by = grid.stop_signal()
    if stopped_by is not None:
        console.print(f"Stopped with {len(board.finished())} of {len(todo)} cells trained. The same command continues.")
        sys.exit(128 + stopped_by)
    for ended in board.failed:
        console.print(f"Failed: {ended.cell.folder.name}: {printable(ended.error)}", soft_wrap=True)
    return not board.failed


def _show(suite: "Suite", scale: "Scale", results: "Results", format: str) -> None:
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


def _write(suite: "Suite", scale: "Scale", results: "Results", page: Path, rows: Path) -> None:
    from papi.experiments import cells
    from papi.experiments import page as pages
    from papi.experiments.rows import write_rows

    name = suite.name if scale == "cpu" else f"{suite.name}-{scale}"
    write_rows(rows / f"{name}.jsonl", {cells.key(config) for config in suite.cells()}, results)
    pages.write(page, suite, scale, results)


def _list(scale: "Scale | None", results: "Results") -> None:
    """Every suite, what is done of it, and how long the rest takes."""
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
