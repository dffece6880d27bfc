"""The small tables of the overview."""

from toy_results import result

from papi.experiments.cpu import BUDGET, DEFAULT, LISTENING, ONE_PASS, RATES
from papi.experiments.paper import CEILING, PAPI, PRODEN
from papi.experiments.suites import Table
from recipes import overview

TABLE = Table("equal compute", overview.entries(), RATES, units=BUDGET)


def test_every_method_as_published_and_every_form_of_papi() -> None:
    labels = {entry.label for entry in overview.entries()}
    assert {"PaPi", "PaPi, one pass", "PaPi, one pass, set_prior=auto", "PRODEN", "LWS", "EM"} <= labels
    assert not [entry for entry in LISTENING if entry.method != "papi" and entry in overview.entries()]


def test_a_table_has_the_methods_and_tasks_that_were_run() -> None:
    ran = [(CEILING, 0.9), (PAPI, 0.7), (ONE_PASS, 0.8), (PRODEN, 0.6)]
    found = {
        each.key: each
        for entry, accuracy in ran
        for seed in range(3)
        for each in (result(TABLE, entry, seed, accuracy, RATES[-1]),)
    }
    lines = overview.family("uniform", found).splitlines()
    assert lines[0] == f"| Method | {RATES[-1].label} |"
    assert lines[2:] == [
        "| Supervised | 90.00 ± 0.00 |",
        "| PaPi, paper's form | 70.00 ± 0.00 |",
        "| PaPi, one pass | **80.00 ± 0.00** |",
        "| PRODEN | 60.00 ± 0.00 |",
    ]
    (column,) = overview.columns("uniform", found)
    assert column.first.label == "PaPi, one pass"
    assert column["PaPi, paper's form"].epochs == BUDGET / 10


def test_the_default_form_is_marked() -> None:
    found = {each.key: each for each in (result(TABLE, DEFAULT, seed, 0.8, RATES[-1]) for seed in range(3))}
    assert f"| {DEFAULT.label} (default) | **80.00 ± 0.00** |" in overview.family("uniform", found)


def test_a_family_without_runs_has_no_table() -> None:
    assert overview.family("colour", {}) == ""
