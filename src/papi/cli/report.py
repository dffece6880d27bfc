"""`papi report`: one page that shows what a run learned, or how several runs compare."""

import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from papi.cli.options import SWITCH, WHOLE
from papi.cli.terminal import make_console
from papi.errors import UserError
from papi.files.durable import output_file, require_output
from papi.report import comparison_page, read_run, run_page
from papi.report.run import Run
from papi.report.server import serve as serve_until_told
from papi.report.server import start
from papi.runs.folder import RunFolder


def report(
    first: Path,
    /,
    *more: Path,
    out: Path | None = None,
    data_dir: Annotated[Path | None, Parameter(show_default=False)] = None,
    open_page: Annotated[bool, SWITCH, Parameter(name="--open")] = False,
    serve: Annotated[bool, SWITCH] = False,
    port: Annotated[int | None, WHOLE, Parameter(show_default=False)] = None,
) -> None:
    """Write an HTML report on one run, or a comparison of several runs.

    Parameters
    ----------
    first
        Folder of a run.
    more
        Folders of other runs to compare it with.
    out
        The file to write. [default: report.html in the folder of the run; for several runs, in the current folder]
    data_dir
        Folder of the datasets. [default: that of the run]
    open_page
        Open the page in the browser.
    serve
        Instead of writing a file, start a server on this machine: it shows whole photos, and saves every decision in
        decisions.csv in the folder of the run. Ctrl-C ends it.
    port
        With `--serve`: the port. [default: one that stays the same for a run]
    """
    if serve:
        if more or out is not None:
            raise UserError("--serve shows one run and writes no page: leave out --out and other runs.")
        if port is not None and not 1 <= port <= 65535:
            raise UserError(f"--port is a number from 1 to 65535; got {port}.")
        _serve(first, data_dir, port, open_page)
        return
    if port is not None:
        raise UserError("--port is for a server: add --serve.")
    folders = list(dict.fromkeys(path.resolve() for path in (first, *more)))
    home = first if len(folders) == 1 else Path()
    file, within = (home / "report.html", home) if out is None else (out, None)
    require_output(file, inputs=[each for folder in folders for each in RunFolder(folder).files], within=within)
    runs = [read_run(folder, data_dir) for folder in folders]
    require_output(file, inputs=[each for run in runs for each in _data_files(run)], within=within)
    page = run_page(runs[0], file.parent) if len(runs) == 1 else comparison_page(runs, file.parent)
    with output_file(file, within=within) as half:
        half.write_text(page, encoding="utf-8")
    console = make_console()
    for run in runs:
        for problem in run.problems:
            console.print(f"Note on {run.name}: {problem}", soft_wrap=True)
    console.print(f"The report is {file} ({len(page.encode()) / 1e6:.1f} MB)", soft_wrap=True)
    opened = open_page and webbrowser.open(file.resolve().as_uri())
    if open_page and not opened:
        console.print("No browser could be opened.")
    if not opened:
        console.print(f"Next: open {file} in a browser", soft_wrap=True)
    elif len(runs) == 1 and runs[0].resolved is not None:
        fix = f"papi labels {shlex.quote(str(first))} --fix decisions.csv"
        console.print(f"Next: decide the doubtful images in the page, then {fix}", soft_wrap=True)


def _serve(folder: Path, data_dir: Path | None, port: int | None, open_page: bool) -> None:
    """Serve the desk of a run until Ctrl-C."""
    run = read_run(folder, data_dir)
    if run.resolved is None:
        raise UserError(f"the run in {folder} cannot be decided on yet: {' '.join(run.problems)}")
    file = folder / "decisions.csv"
    require_output(file, within=folder)
    server = start(run, file, port)
    console = make_console()
    for problem in run.problems:
        console.print(f"Note on {run.name}: {problem}", soft_wrap=True)
    if not (open_page and webbrowser.open(server.address)):
        console.print(f"Open {server.address}", soft_wrap=True)
    console.print(f"Decisions are saved in {file} as you make them. Ctrl-C ends.", soft_wrap=True)
    serve_until_told(server)
    decided = len(server.ledger.answers)
    console.print(f"\n{decided:,} decisions are in {file}" if decided else "\nNothing was decided.", soft_wrap=True)
    if decided:
        fix = shlex.join(["papi", "labels", str(folder), "--fix", str(file)])
        console.print(f"Next: {fix}", soft_wrap=True)


def _data_files(run: Run) -> list[Path]:
    """Return what the run was trained on, as far as it was named by a path."""
    if run.config is None:
        return []
    given = run.config.candidates
    return [Path(each) for each in (run.config.data, given.file, given.groups, given.matrix) if each is not None]
