"""`papi report`: write an HTML page about one run or a comparison of several runs."""

import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from papi.cli.options import SWITCH, WHOLE
from papi.cli.terminal import counted, make_console
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
        Folders of more runs to compare.
    out
        Output file. [default: report.html in the run folder; for several runs, in the current folder]
    data_dir
        Folder where known datasets are stored. [default: the folder of the run]
    open_page
        Open the page in the browser.
    serve
        Start a local server instead of writing a file. It shows full-size photos and saves every decision in
        decisions.csv in the run folder. Ctrl-C stops it.
    port
        With `--serve`: port of the server. [default: a fixed port for each run]
    """
    if serve:
        if more or out is not None:
            raise UserError("--serve shows one run and writes no file: leave out --out and other runs.")
        if port is not None and not 1 <= port <= 65535:
            raise UserError(f"--port must be between 1 and 65535; got {port}.")
        _serve(first, data_dir, port, open_page)
        return
    if port is not None:
        raise UserError("--port requires --serve: add it.")
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
    console.print(f"Wrote the report to {file} ({len(page.encode()) / 1e6:.1f} MB)", soft_wrap=True)
    opened = open_page and webbrowser.open(file.resolve().as_uri())
    if open_page and not opened:
        console.print("No browser could be opened.")
    if not opened:
        console.print(f"Next: open {file} in a browser", soft_wrap=True)
    elif len(runs) == 1 and runs[0].resolved is not None:
        fix = f"papi labels {shlex.quote(str(first))} --fix decisions.csv"
        console.print(f"Next: decide the labels of doubtful images on the page, then run {fix}", soft_wrap=True)


def _serve(folder: Path, data_dir: Path | None, port: int | None, open_page: bool) -> None:
    """Serve the review page of a run until Ctrl-C."""
    run = read_run(folder, data_dir)
    if run.resolved is None:
        raise UserError(f"the run in {folder} cannot be reviewed yet: {' '.join(run.problems)}")
    file = folder / "decisions.csv"
    require_output(file, within=folder)
    server = start(run, file, port)
    console = make_console()
    for problem in run.problems:
        console.print(f"Note on {run.name}: {problem}", soft_wrap=True)
    if not (open_page and webbrowser.open(server.address)):
        console.print(f"Open {server.address}", soft_wrap=True)
    console.print(f"Decisions are saved in {file} as you make them. Press Ctrl-C to stop.", soft_wrap=True)
    serve_until_told(server)
    decided = len(server.ledger.answers)
    saved = f"Saved {counted(decided, 'decision')} in {file}" if decided else "No decisions were made."
    console.print(f"\n{saved}", soft_wrap=True)
    if decided:
        fix = shlex.join(["papi", "labels", str(folder), "--fix", str(file)])
        console.print(f"Next: {fix}", soft_wrap=True)


def _data_files(run: Run) -> list[Path]:
    """Return the files that the run was trained on."""
    if run.config is None:
        return []
    given = run.config.candidates
    return [Path(each) for each in (run.config.data, given.file, given.groups, given.matrix) if each is not None]
