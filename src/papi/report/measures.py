"""What the epochs of a run measured: the values along the epochs, the last one, and the best epoch by any of them."""

from collections.abc import Callable, Sequence
from typing import TypeGuard

from papi.runs.schema import EpochRow
from papi.training.metrics import picked

LARGEST = 1e300  # of a value that can be drawn: differences between two of them are finite
Measure = Callable[[EpochRow], float | None]
"""Takes one measurement out of a row. None means that it was not measured."""

CRITERIA: dict[str, Measure] = {
    "covering_rate": lambda row: row.covering_rate,
    "approximated_accuracy": lambda row: row.approximated_accuracy,
    "candidate_likelihood": lambda row: row.candidate_likelihood,
}
"""The criteria of `papi.training.metrics`, which need no true label. More is better."""


def finite(value: float | None) -> TypeGuard[float]:
    """Whether there is a number that can be drawn and compared. A diverged run has rows with NaN and infinity."""
    return value is not None and abs(value) < LARGEST


def logged(name: str) -> Measure:
    """Return the measure of something that a method logs under its own name."""
    return lambda row: row.logs.get(name)


def loss_terms(rows: Sequence[EpochRow]) -> dict[str, Measure]:
    """Return the whole loss and the terms of it that the method logged, by the names for a legend."""
    names = sorted({name for row in rows for name in row.logs if name.startswith("loss_")})
    terms = {name.removeprefix("loss_").replace("_", " "): logged(name) for name in names}
    return {"all together": lambda row: row.loss} | terms


def known(rows: Sequence[EpochRow], measure: Measure) -> list[tuple[EpochRow, float]]:
    """Return the rows that have a finite value, each with that value."""
    return [(row, float(value)) for row in rows if finite(value := measure(row))]


def course(rows: Sequence[EpochRow], measure: Measure) -> tuple[list[int], list[float]]:
    """Return epochs, counted from 1, and their values. Epochs without a value are left out."""
    found = known(rows, measure)
    return [row.epoch + 1 for row, _ in found], [value for _, value in found]


def last(rows: Sequence[EpochRow], measure: Measure) -> float | None:
    """Return the value of the last epoch that has one."""
    values = course(rows, measure)[1]
    return values[-1] if values else None


def best(rows: Sequence[EpochRow], measure: Measure) -> tuple[EpochRow, float] | None:
    """Return the row with the highest value, and the value. Of equal rows it is the last, as `--select` picks it."""
    found = known(rows, measure)
    return found[picked([value for _, value in found])] if found else None
