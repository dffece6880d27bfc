"""What a search found: the trials by every criterion, and what each criterion would have picked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from papi.config import as_typed
from papi.experiments.search import Trial
from papi.experiments.tables import NOTHING, Sheet
from papi.runs.folder import RunFolder

By = Literal["covering-rate", "approximated-accuracy", "candidate-likelihood", "accuracy"]
ORACLE: By = "accuracy"
CRITERIA: dict[By, str] = {
    "covering-rate": "covering_rate",
    "approximated-accuracy": "approximated_accuracy",
    "candidate-likelihood": "candidate_likelihood",
    ORACLE: "test_accuracy",
}
"""What trials are judged by, with the name of its value in a summary; more is better. Only the oracle knows truth."""


@dataclass(frozen=True)
class Judged:
    """A finished trial, with its value by every criterion that it has one for."""

    trial: Trial
    values: Mapping[By, float]


def read_trial(trial: Trial, folder: Path) -> Judged | None:
    """What a trial gave; None if it has not finished."""
    summary = RunFolder(folder).read_summary()
    if summary is None:
        return None
    values = {by: getattr(summary, name) for by, name in CRITERIA.items()}
    return Judged(trial, {by: value for by, value in values.items() if value is not None})


def pick(judged: Sequence[Judged], by: By) -> Judged | None:
    """The best trial by a criterion, of equal ones the first: nothing is changed without a reason."""
    return next(iter(ranked(judged, by)), None)


def ranked(judged: Sequence[Judged], by: By) -> list[Judged]:
    """The trials that a criterion has a value for, best first."""
    known = [each for each in judged if by in each.values]
    return sorted(known, key=lambda each: (-each.values[by], each.trial.number))


def trials_sheet(judged: Sequence[Judged], by: By) -> Sheet:
    """All finished trials, best first, with what was drawn."""
    shown = [criterion for criterion in CRITERIA if any(criterion in each.values for each in judged)]
    header = ("trial", *map(_title, shown), "settings")
    rows = [
        (
            str(each.trial.number),
            *(_text(each, criterion) for criterion in shown),
            " ".join(f"{name}={as_typed(value)}" for name, value in each.trial.values.items()),
        )
        for each in ranked(judged, by)
    ]
    return Sheet(f"trials, best first by {_title(by)}", header, tuple(rows), frozenset({(0, 0)} if rows else ()))


def picks_sheet(judged: Sequence[Judged], by: By) -> Sheet:
    """What each criterion would have picked and, where truth is known, how far below the best trial that is."""
    first = next((each for each in judged if each.trial.number == 0), None)
    choices: dict[str, Judged | None] = {_title(criterion): pick(judged, criterion) for criterion in CRITERIA}
    choices["no search (trial 0)"] = first
    best = pick(judged, ORACLE)
    rows = []
    for name, chosen in choices.items():
        if chosen is None:
            continue
        cost = (_text(chosen, ORACLE), _below(chosen, best)) if best is not None else ()
        rows.append((name, str(chosen.trial.number), *cost))
    header = ("picked by", "trial", *(("test accuracy", "points below the oracle") if best is not None else ()))
    own = [number for number, row in enumerate(rows) if row[0] == _title(by)]
    return Sheet("what each criterion picks", header, tuple(rows), frozenset((number, 0) for number in own))


def _below(chosen: Judged, best: Judged) -> str:
    if ORACLE not in chosen.values:
        return NOTHING
    return f"{100 * (best.values[ORACLE] - chosen.values[ORACLE]):.2f}"


def _title(by: By) -> str:
    return "test accuracy (oracle)" if by == ORACLE else by.replace("-", " ")


def _text(each: Judged, by: By) -> str:
    if by not in each.values:
        return NOTHING
    return f"{each.values[by]:.4f}" if by == "candidate-likelihood" else f"{each.values[by]:.2%}"
