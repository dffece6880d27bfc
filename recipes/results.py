"""Write the results page: train what is missing of a suite, keep the results, and put tables and figures on the page.

    python -m recipes.results --list                                        # what is done, with the kept rows
    python -m recipes.results uniform ablation --jobs 2                     # train the rest, then write both
    python -m recipes.results uniform --adopt FOLDER --commit REVISION      # with runs that were made elsewhere
    python -m recipes.results all --tables-only                             # write from what is there

Results stay in docs/results/*.jsonl and count as done without their run folders.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from papi.cli.bench_options import Training
from papi.cli.bench_suites import print_commands, print_suites, train_missing
from papi.cli.options import SWITCH
from papi.errors import UserError
from papi.experiments import cells, find_suites
from papi.experiments.results import Results
from papi.experiments.suites import Scale, Suite
from recipes import page
from recipes.rows import collect, write_rows

DOCS = Path(__file__).resolve().parents[1] / "docs"
_TRAINING = Training()


def main(
    *suites: str,
    scale: Literal["cpu", "paper"] = "cpu",
    rows: Path = DOCS / "results",
    adopt: Annotated[tuple[Path, ...], Parameter(negative="", consume_multiple=True)] = (),
    commit: str | None = None,
    write: Path = DOCS / "results.md",
    list_suites: Annotated[bool, SWITCH, Parameter(name="--list")] = False,
    dry_run: Annotated[bool, SWITCH] = False,
    tables_only: Annotated[bool, SWITCH] = False,
    training: Annotated[Training, Parameter(name="*")] = _TRAINING,
) -> None:
    """Train what is missing of the suites, keep the results as rows, and write tables and figures into a page.

    Parameters
    ----------
    suites
        Suites by name, as for `papi bench`; `all` stands for every one.
    scale
        The scale of the suites.
    rows
        Folder of the kept rows.
    adopt
        More folders with finished runs. Those with the settings of a cell count as it.
    commit
        The revision of adopted runs that did not record theirs.
    write
        The page.
    list_suites
        List all suites and what is done of them.
    dry_run
        Print the command of every cell, as a comment where it is done, and train nothing.
    tables_only
        Train nothing: write what is finished.
    """
    for folder in adopt:
        if not folder.is_dir():
            raise UserError(f"--adopt {folder} is not a folder.")
    chosen = [suite for name in suites for suite in find_suites(name, scale)]
    folders = {training.out: None} | dict.fromkeys(adopt, commit)
    results = collect(rows, folders)
    if list_suites or not suites:
        print_suites(scale, results)
    elif dry_run:
        print_commands(chosen, training, results)
    else:
        complete = tables_only or train_missing(chosen, training, results)
        publish(chosen, scale, collect(rows, folders), rows, write)
        sys.exit(0 if complete else 1)


def publish(suites: list[Suite], scale: Scale, results: Results, rows: Path, file: Path) -> None:
    """Keep the results of the suites as rows, and write their tables and figures into the page."""
    for suite in suites:
        name = suite.name if scale == "cpu" else f"{suite.name}-{scale}"
        write_rows(rows / f"{name}.jsonl", {cells.key(config) for config in suite.cells()}, results)
        page.write(file, suite, scale, results)


if __name__ == "__main__":
    try:
        cyclopts.run(main)
    except UserError as error:
        sys.exit(f"recipes.results: {error}")
