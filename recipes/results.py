"""Write the results pages: train the missing runs of a suite, store the results, and write its page and the overview.

    python -m recipes.results --list                                        # list suites and their finished runs
    python -m recipes.results uniform ablation --jobs 2                     # train missing runs, then write both pages
    python -m recipes.results uniform --adopt FOLDER --commit REVISION      # add runs from another folder
    python -m recipes.results all --tables-only                             # write all pages from finished runs

Results are stored in docs/results/*.jsonl and count as finished without their run folders. The templates of the pages
are in recipes/pages.
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
from papi.experiments import SUITES, cells, find_suites
from papi.experiments.results import Results
from papi.experiments.suites import Scale, Suite
from recipes.rows import collect, write_rows
from recipes.writing import Writer

DOCS = Path(__file__).resolve().parents[1] / "docs"
_TRAINING = Training()


def main(
    *suites: str,
    scale: Literal["cpu", "paper"] = "cpu",
    rows: Path = DOCS / "results",
    adopt: Annotated[tuple[Path, ...], Parameter(negative="", consume_multiple=True)] = (),
    commit: str | None = None,
    write: Path = DOCS,
    list_suites: Annotated[bool, SWITCH, Parameter(name="--list")] = False,
    dry_run: Annotated[bool, SWITCH] = False,
    tables_only: Annotated[bool, SWITCH] = False,
    training: Annotated[Training, Parameter(name="*")] = _TRAINING,
) -> None:
    """Train the missing runs of the suites, store the results as rows, and write the pages with tables and figures.

    Parameters
    ----------
    suites
        Names of suites, as for `papi bench`; `all` selects all of them.
    scale
        The scale of the suites.
    rows
        Folder of the stored rows.
    adopt
        More folders with finished runs. A run with the settings of a cell counts for that cell.
    commit
        The revision of adopted runs that did not record one.
    write
        The folder of the pages: `results.md`, and `results/SUITE.md` for each suite.
    list_suites
        List all suites and how much of each is finished.
    dry_run
        Train nothing; print the command of every cell, commented out if it is finished.
    tables_only
        Train nothing; write the finished results.
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
        untrue = publish(chosen, scale, collect(rows, folders), rows, write)
        for claim in untrue:
            print(claim, file=sys.stderr)
        sys.exit(0 if complete and not untrue else 1)


def publish(suites: list[Suite], scale: Scale, results: Results, rows: Path, docs: Path) -> list[str]:
    """Store the results of the suites as rows and write their pages; for CPU suites, also the overview.

    Returns the claims on pages that the rows contradict.
    """
    writer = Writer(results, docs)
    for suite in suites:
        name = suite.name if scale == "cpu" else f"{suite.name}-{scale}"
        write_rows(rows / f"{name}.jsonl", {cells.key(config) for config in suite.cells()}, results)
        writer.suite(suite, scale)
    if scale == "cpu" and any(suite.name in SUITES["cpu"] for suite in suites):
        writer.summary()
    return writer.untrue


if __name__ == "__main__":
    try:
        cyclopts.run(main)
    except UserError as error:
        sys.exit(f"recipes.results: {error}")
