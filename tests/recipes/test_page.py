"""The generated parts of a suite's page."""

from dataclasses import replace
from pathlib import Path

import pytest
from toy_results import COMPUTE, ENTRIES, EPOCHS, SUITE, TASK, result, results

from papi.experiments import cells
from papi.experiments.results import Origin
from papi.experiments.suites import Figure, Scale, Suite
from recipes import page


def test_tables_and_figures(tmp_path: Path) -> None:
    suite = replace(SUITE, figures=(Figure("curves", "Curves", "test_accuracy", EPOCHS),))
    parts = page.parts(suite, "cpu", results(), tmp_path / "results")
    assert "| PaPi | **83.00 ± 2.45** |" in parts.tables
    assert "(toy-curves.svg)" in parts.figures
    assert (tmp_path / "results" / "toy-curves.svg").exists()


def test_what_has_no_run_is_left_out_and_named(tmp_path: Path) -> None:
    other = replace(TASK, label="q = 0.9", flip_rate=0.9)
    suite = Suite("toy", "A toy", (replace(EPOCHS, tasks=(TASK, other)), replace(COMPUTE, units=90)))
    found = {key: each for key, each in results().items() if each.config.method != "dpll"}
    parts = page.parts(suite, "cpu", found, tmp_path)
    assert "Not run yet, and left out: DPLL; fashion-mini, q = 0.9; the table “equal compute”." in parts.origin
    for text in (parts.tables, parts.details):
        assert "PRODEN" in text
        assert "DPLL" not in text
        assert "q = 0.9" not in text
        assert "equal compute" not in text


def test_a_column_of_the_ceiling_alone_is_left_out() -> None:
    table = page.finished_table(EPOCHS, {key: each for key, each in results().items() if each.config.method == "papi"})
    assert [entry.label for entry in table.entries] == ["PaPi"]
    alone = {key: each for key, each in results().items() if each.config.method == "supervised"}
    assert page.finished_table(EPOCHS, alone).tasks == ()


def test_a_suite_without_runs_has_no_table(tmp_path: Path) -> None:
    parts = page.parts(SUITE, "cpu", {}, tmp_path)
    assert parts.tables == parts.details == parts.figures == ""
    assert f"0 of {len({cells.key(config) for config in SUITE.cells()})} runs are finished" in parts.origin


def test_details_leave_out_methods_without_a_run_of_the_task(tmp_path: Path) -> None:
    other = replace(TASK, label="q = 0.9", flip_rate=0.9)
    table = replace(EPOCHS, tasks=(TASK, other))
    found = results()
    for seed in table.seeds:
        new = result(table, ENTRIES[1], seed, 0.7, other)
        found[new.key] = new
    details = page.parts(Suite("toy", "A toy", (table,)), "cpu", found, tmp_path).details
    first, second = details.split("**fashion-mini, q = 0.9**")
    assert "PRODEN" in first
    assert "PRODEN" not in second
    assert "| PaPi |" in second


def test_the_page_says_what_the_runs_were_made_with(tmp_path: Path) -> None:
    found = results()
    first, second, *_ = found
    found[first] = replace(found[first], made=Origin({"torch": "2.14.0"}, 2, "2026-02-01", "abc1234"))
    found[second] = replace(found[second], made=replace(found[second].made, commit="fedcba9"))
    told = page.parts(SUITE, "cpu", found, tmp_path).origin
    for fact in ("torch 2.13.0", "torch 2.14.0", "threads: 1, 2", "abc1234, fedcba9", "2026-01-01 to 2026-02-01"):
        assert fact in told
    keys = {cells.key(config) for config in SUITE.cells()}
    assert f"`papi bench toy`: {len(keys & found.keys())} of {len(keys)} runs" in told


def test_hours_are_cpu_time_where_it_was_measured(tmp_path: Path) -> None:
    table = replace(EPOCHS, entries=EPOCHS.entries[:2], seeds=(0,))
    found = {key: each for key, each in results().items() if key in {cells.key(config) for config in table.cells()}}
    measured, unmeasured = found.values()
    found[measured.key] = replace(measured, values=measured.values | {"cpu_seconds": 3600.0, "seconds": 9e9})
    old = {name: value for name, value in unmeasured.values.items() if name != "cpu_seconds"} | {"seconds": 7200.0}
    found[unmeasured.key] = replace(unmeasured, values=old)
    assert "3.0 hours of training" in page.parts(Suite("toy", "A toy", (table,)), "cpu", found, tmp_path).origin


@pytest.mark.parametrize(("scale", "costs"), [("paper", False), ("cpu", True)])
def test_details_are_folded_and_only_at_the_small_scale(scale: Scale, costs: bool, tmp_path: Path) -> None:
    folded = page.parts(SUITE, "cpu", results(), tmp_path).details
    assert folded.count("<details>") == folded.count("</details>") == 1
    assert page.parts(replace(SUITE, costs=costs), scale, results(), tmp_path).details == ""


def test_a_figure_without_runs_has_no_link(tmp_path: Path) -> None:
    suite = replace(SUITE, figures=(Figure("curves", "Curves", "test_accuracy", EPOCHS),))
    assert page.parts(suite, "cpu", {}, tmp_path / "results").figures == ""
    assert not (tmp_path / "results").exists()
