"""Extracts metrics from the epochs of a run: the values by epoch, the last one, and the best epoch."""

from collections.abc import Callable, Sequence
from typing import TypeGuard

from papi.runs.schema import EpochRow
from papi.training.metrics import picked

LARGEST = 1e300  # largest value to draw: differences between two such values are finite
Measure = Callable[[EpochRow], float | None]
"""Returns one metric of a row, or None if it was not measured."""

CRITERIA: dict[str, Measure] = {
    "covering_rate": lambda row: row.covering_rate,
    "approximated_accuracy": lambda row: row.approximated_accuracy,
    "candidate_likelihood": lambda row: row.candidate_likelihood,
}
"""The criteria of `papi.training.metrics` that need no true labels. Higher is better."""


def finite(value: float | None) -> TypeGuard[float]:
    """Return whether a value can be drawn and compared. A diverged run has rows with NaN and infinity."""
    return value is not None and abs(value) < LARGEST


def logged(name: str) -> Measure:
    """Return the measure of a value that a method logs."""
    return lambda row: row.logs.get(name)


def loss_terms(rows: Sequence[EpochRow]) -> dict[str, Measure]:
    """Return the total loss and the loss terms that the method logged, by their names in the legend."""
    names = sorted({name for row in rows for name in row.logs if name.startswith("loss_")})
    terms = {name.removeprefix("loss_").replace("_", " "): logged(name) for name in names}
    return {"total": lambda row: row.loss} | terms


def known(rows: Sequence[EpochRow], measure: Measure) -> list[tuple[EpochRow, float]]:
    """Return the rows that have a finite value, each with that value."""
    return [(row, float(value)) for row in rows if finite(value := measure(row))]


def course(rows: Sequence[EpochRow], measure: Measure) -> tuple[list[int], list[float]]:
    """Return epochs, counted from 1, and their values. Epochs without a value are skipped."""
    found = known(rows, measure)
    return [row.epoch + 1 for row, _ in found], [value for _, value in found]


def last(rows: Sequence[EpochRow], measure: Measure) -> float | None:
    """Return the value of the last epoch that has one."""
    values = course(rows, measure)[1]
    return values[-1] if values else None


def best(rows: Sequence[EpochRow], measure: Measure) -> tuple[EpochRow, float] | None:
    """Return the row with the highest value, and the value. Ties go to the last row, as with `--select`."""
    found = known(rows, measure)
    return found[picked([value for _, value in found])] if found else None
