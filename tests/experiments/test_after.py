"""Methods after the paper: in which suites they are, and what the kept rows say of them."""

from pathlib import Path

import pytest

from papi.experiments import SUITES, tables
from papi.experiments.after import AFTER, DIRK, DIRK_REF, EM, NEIGHBOURS
from papi.experiments.compute import units
from papi.experiments.paper import PRODEN, RC
from papi.experiments.suites import Entry, Table
from recipes.rows import read_rows

ROWS = Path(__file__).parents[2] / "docs" / "results" / "instance-dependent.jsonl"
EPOCHS, COMPUTE = SUITES["cpu"]["instance-dependent"].tables


@pytest.mark.parametrize("suite", ["uniform", "instance-dependent", "budget", "real-world"])
def test_they_are_in_the_suites(suite: str) -> None:
    asked = {entry for table in SUITES["cpu"][suite].tables for entry in table.entries}
    assert set(AFTER) <= asked


@pytest.mark.parametrize(("entry", "cost"), [(DIRK, 4), (DIRK_REF, 8), (EM, 9), (NEIGHBOURS, 3)])
def test_their_compute_is_that_of_the_others(entry: Entry, cost: int) -> None:
    assert units(entry.method, entry.settings) == cost
    length = COMPUTE.length(entry)
    assert length is not None
    assert abs(cost * length - 120) <= cost / 2


def kept(table: Table, entry: Entry, name: str) -> list[float]:
    """A value of the runs of an entry, by seed; skips while the rows are not there."""
    (task,) = table.tasks
    found = tables.outcome(table, entry, task, {row.key: row for row in read_rows(ROWS)})
    if not found.complete:
        pytest.skip(f"rows of {entry.label} are missing: python -m recipes.results instance-dependent")
    return [run.values[name] for run in found.runs.values()]


@pytest.mark.parametrize("rival", [PRODEN, RC], ids=lambda entry: entry.label)
@pytest.mark.parametrize("entry", [DIRK, EM], ids=lambda entry: entry.label)
def test_they_are_ahead_where_sets_depend_on_the_image(entry: Entry, rival: Entry) -> None:
    """At equal compute, in the mean of the seeds, as docs/methods says."""
    ours, theirs = (kept(COMPUTE, each, "test_accuracy") for each in (entry, rival))
    assert sum(ours) > sum(theirs)


@pytest.mark.parametrize("entry", [DIRK, EM], ids=lambda entry: entry.label)
def test_they_resolve_more_labels_than_proden(entry: Entry) -> None:
    """At equal epochs."""
    ours, theirs = (kept(EPOCHS, each, "disambiguation_accuracy") for each in (entry, PRODEN))
    assert sum(ours) > sum(theirs)
