"""The results of a search: the trials ranked by every criterion, and the trial that each criterion selects."""

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
"""Criteria for trials and their names in a summary; higher is better. Only the oracle uses true labels."""


@dataclass(frozen=True)
class Judged:
    """A finished trial with its values of the available criteria."""

    trial: Trial
    values: Mapping[By, float]


def read_trial(trial: Trial, folder: Path) -> Judged | None:
    """The result of a trial; None if it has not finished."""
    summary = RunFolder(folder).read_summary()
    if summary is None:
        return None
    values = {by: getattr(summary, name) for by, name in CRITERIA.items()}
    return Judged(trial, {by: value for by, value in values.items() if value is not None})


def pick(judged: Sequence[Judged], by: By) -> Judged | None:
    """The best trial by a criterion. Of equal trials, the first: defaults are kept unless something is better."""
    return next(iter(ranked(judged, by)), None)


def ranked(judged: Sequence[Judged], by: By) -> list[Judged]:
    """The trials that have a value of a criterion, best first."""
    known = [each for each in judged if by in each.values]
    return sorted(known, key=lambda each: (-each.values[by], each.trial.number))


def trials_sheet(judged: Sequence[Judged], by: By) -> Sheet:
    """All finished trials, best first, with their sampled settings."""
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
    """The trial that each criterion selects and, if true labels are known, its distance from the best trial."""
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
    return Sheet("selected by each criterion", header, tuple(rows), frozenset((number, 0) for number in own))


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
