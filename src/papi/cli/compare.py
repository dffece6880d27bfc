"""`papi compare`: rank runs by the candidate labels of validation samples, without true labels."""

import shlex
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Literal

from rich.table import Table
from rich.text import Text

from papi.cli.options import SWITCH
from papi.cli.terminal import make_console, printable
from papi.report.criteria import Judged, Place, Regret, places, read_judged, regrets
from papi.report.measures import CRITERIA

_HOLD_OUT = "Next: papi train … --data.holdout 0.1, to train with a validation set"
Criterion = Literal["covering-rate", "approximated-accuracy", "candidate-likelihood"]


def compare(
    first: Path,
    /,
    *more: Path,
    by: Criterion = "covering-rate",
    regret: Annotated[bool, SWITCH] = False,
) -> None:
    """Rank runs by how well they predict the candidate labels of their validation sets.

    Parameters
    ----------
    first
        Folder of a run, finished or not.
    more
        Folders of other runs.
    by
        Criterion to rank by.
    regret
        Show the regret of each criterion instead: how far the test accuracy of the selected epoch is below the best.
    """
    given = {path.resolve(): path for path in (first, *more)}
    runs = [read_judged(path) for path in given]
    console = make_console()
    if regret:
        found = regrets(runs)
        if not found:
            console.print("No run has both a test accuracy and a criterion, so there is no regret to show.")
            console.print(_HOLD_OUT)
            return
        console.print(_regret_table(found))
        console.print("Next: papi train … --select covering-rate, to keep the epoch that this criterion selects")
        return
    key = by.replace("-", "_")
    console.print(_ranking(runs, key))
    for sentence in notes(runs, key):
        console.print(sentence, soft_wrap=True)
    ranks = [place.rank for place in places(runs, key)]
    if 1 in ranks:
        best = list(given.values())[ranks.index(1)]
        console.print(f"Next: papi report {shlex.quote(str(best))} --open", soft_wrap=True)
    else:
        console.print(_HOLD_OUT)


def _ranking(runs: list[Judged], key: str) -> Table:
    found = {criterion: places(runs, criterion) for criterion in CRITERIA}
    tested = any(run.row.test_accuracy is not None for run in runs)
    names = [criterion.replace("_", " ") for criterion in CRITERIA]
    table = Table("rank", "run", "method", "epoch", *names, *(["test accuracy"] if tested else []))
    for n in sorted(range(len(runs)), key=lambda n: found[key][n].rank or len(runs) + 1):
        run = runs[n]
        accuracy = "–" if run.row.test_accuracy is None else f"{run.row.test_accuracy:.2%}"
        table.add_row(
            str(found[key][n].rank or "–"),
            Text(printable(run.name)),
            Text(printable(run.method)),
            str(run.row.epoch + 1),
            *(_cell(criterion, found[criterion][n]) for criterion in CRITERIA),
            *([accuracy] if tested else []),
        )
    return table


def _cell(criterion: str, place: Place) -> str:
    if place.value is None:
        return "–"
    value = f"{place.value:.4f}" if criterion == "candidate_likelihood" else f"{place.value:.2%}"
    return f"{value} ({place.rank})"


def notes(runs: list[Judged], key: str) -> list[str]:
    """Return notes about runs that cannot be ranked, are unfinished, tie, or are not comparable."""
    told, tied = [], defaultdict(list)
    found = places(runs, key)
    for run, place in zip(runs, found, strict=True):
        if place.rank is None:
            told.append(f"{printable(run.name)} has no validation set: train it with --data.holdout 0.1 to rank it.")
        else:
            tied[place.rank].append(printable(run.name))
        if not run.finished:
            count = f"{len(run.rows)} of {run.epochs or '?'} epochs are done"
            told.append(f"{printable(run.name)} has not finished: {count}.")
    told += [f"{' and '.join(names)} tie by {key.replace('_', ' ')}." for names in tied.values() if len(names) > 1]
    if len({run.parts for run, place in zip(runs, found, strict=True) if place.rank is not None}) > 1:
        told.append(
            "The runs have different validation sets or candidate labels, so small differences mean little. "
            "To make runs comparable, use the same data, --candidates.seed, --seed and --data.holdout."
        )
    return told


def _regret_table(found: list[Regret]) -> Table:
    table = Table(
        "task", "selected by", "runs", "test accuracy", "mean regret", "worst",
        "rank correlation over epochs", "over runs",
        caption="regret: test accuracy of the best epoch minus that of the selected one",
    )  # fmt: skip
    task = ""
    for each in found:
        if each.task != task:
            table.add_section()
        table.add_row(
            Text("" if each.task == task else printable(each.task)),
            each.criterion.replace("_", " ") if each.criterion != "last" else "last epoch",
            str(each.runs),
            f"{each.accuracy:.2%}",
            f"{100 * each.mean:.2f} points",
            f"{100 * each.worst:.2f}",
            *("–" if value is None else f"{value:.2f}" for value in (each.over_epochs, each.over_runs)),
        )
        task = each.task
    return table
