"""Values along the epochs of a run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.report.measures import CRITERIA, LARGEST, best, course, finite, known, last, logged, loss_terms
from papi.runs.schema import EpochRow
from papi.training import metrics
from runs_in_memory import epochs

NUMBERS = st.none() | st.floats() | st.integers(-(2**62), 2**62)


def accuracy(row: EpochRow) -> float | None:
    return row.test_accuracy


@given(st.floats() | st.integers(-(2**62), 2**62))
def test_finite_numbers(value: float) -> None:
    assert finite(value) == (math.isfinite(value) and abs(value) < LARGEST)
    assert not finite(None)


def test_whole_numbers_beyond_all_floats_are_not_finite() -> None:
    assert not finite(10**400)


@given(st.lists(NUMBERS, max_size=12))
def test_the_course_has_all_finite_values_in_order(values: list[float | None]) -> None:
    rows = epochs(len(values), test_accuracy=values)
    numbers, found = course(rows, accuracy)
    assert found == [float(value) for value in values if finite(value)]
    assert [values[number - 1] for number in numbers] == [value for value in values if finite(value)]
    assert numbers == sorted(numbers)
    assert last(rows, accuracy) == (found[-1] if found else None)
    assert [value for _, value in known(rows, accuracy)] == found


@given(st.lists(NUMBERS, max_size=12))
def test_the_best_epoch_is_the_last_of_the_highest(values: list[float | None]) -> None:
    rows = epochs(len(values), test_accuracy=values)
    pick = best(rows, accuracy)
    numbers, found = course(rows, accuracy)
    if not found:
        assert pick is None
        return
    assert pick is not None
    assert pick[1] == max(found)
    assert pick[0].epoch + 1 == max(n for n, value in zip(numbers, found, strict=True) if value == max(found))


@pytest.mark.parametrize("name", metrics.CRITERIA)
def test_each_criterion_reads_the_field_of_its_name(name: str) -> None:
    (row,) = epochs(1, **{name: [0.25]})
    assert {each: measure(row) for each, measure in CRITERIA.items()} == dict.fromkeys(CRITERIA) | {name: 0.25}


def test_all_criteria_are_there_in_their_order() -> None:
    assert tuple(CRITERIA) == metrics.CRITERIA


def test_loss_terms_begin_with_the_whole() -> None:
    rows = (
        EpochRow(epoch=0, loss=3.0, seconds=1.0, logs={"loss_two": 2.0, "queue_length": 5.0}),
        EpochRow(epoch=1, loss=2.0, seconds=1.0, logs={"loss_a_part": 1.0, "loss_two": 1.5}),
    )
    terms = loss_terms(rows)
    assert list(terms) == ["total", "a part", "two"]
    assert [course(rows, measure) for measure in terms.values()] == [
        ([1, 2], [3.0, 2.0]),
        ([2], [1.0]),
        ([1, 2], [2.0, 1.5]),
    ]


def test_what_was_not_logged_is_none() -> None:
    (row,) = epochs(1)
    assert logged("loss_alignment")(row) is None
