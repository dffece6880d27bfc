"""The generated parts of a page."""

from dataclasses import replace
from pathlib import Path

import pytest
from toy_results import EPOCHS, SUITE, results

from papi.experiments import cells
from papi.experiments.results import Origin
from papi.experiments.suites import Figure, Scale, Suite
from recipes import page


def test_the_page_keeps_what_people_wrote(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    begin, end = page.marks(SUITE, "cpu")
    file.write_text(f"# Results\n\nBefore.\n\n{begin}\nold\n{end}\n\nAfter.\n")
    suite = replace(SUITE, figures=(Figure("curves", "Curves", "test_accuracy", EPOCHS),))
    page.write(file, suite, "cpu", results())
    text = file.read_text()
    assert text.startswith("# Results\n\nBefore.\n\n")
    assert text.endswith(f"{end}\n\nAfter.\n")
    assert "\nold\n" not in text
    assert "| PaPi | **83.00 ± 2.45** |" in text
    assert "of the last epoch" in text
    assert "(results/toy-curves.svg)" in text
    assert (tmp_path / "results" / "toy-curves.svg").exists()
    page.write(file, suite, "cpu", results())
    assert file.read_text() == text


def test_a_suite_without_marks_comes_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    file.write_text("# Results\n\nMine.\n")
    page.write(file, SUITE, "cpu", results())
    assert file.read_text().startswith("# Results\n\nMine.\n\n## A toy\n\n<!-- papi bench toy --scale cpu: begin -->")


def test_a_page_that_does_not_exist_begins(tmp_path: Path) -> None:
    file = tmp_path / "new.md"
    page.write(file, SUITE, "cpu", {})
    text = file.read_text()
    assert text.startswith("# ")
    assert f"0 of {len({cells.key(config) for config in SUITE.cells()})} runs are finished" in text


def test_suites_do_not_touch_each_other(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    other = replace(SUITE, name="other", title="Another")
    page.write(file, SUITE, "cpu", results())
    page.write(file, other, "cpu", {})
    page.write(file, SUITE, "paper", {})
    begin, end = page.marks(SUITE, "cpu")
    first = file.read_text().split(begin)[1].split(end)[0]
    assert "83.00 ± 2.45" in first
    page.write(file, other, "cpu", results())
    assert file.read_text().split(begin)[1].split(end)[0] == first


def test_the_page_says_what_the_runs_were_made_with(tmp_path: Path) -> None:
    found = results()
    first, second, *_ = found
    found[first] = replace(found[first], made=Origin({"torch": "2.14.0"}, 2, "2026-02-01", "abc1234"))
    found[second] = replace(found[second], made=replace(found[second].made, commit="fedcba9"))
    page.write(tmp_path / "results.md", SUITE, "cpu", found)
    text = (tmp_path / "results.md").read_text()
    (told,) = [line for line in text.splitlines() if line.startswith("`papi bench toy --scale cpu`")]
    for fact in ("torch 2.13.0", "torch 2.14.0", "threads: 1, 2", "abc1234, fedcba9", "2026-01-01 to 2026-02-01"):
        assert fact in told
    keys = {cells.key(config) for config in SUITE.cells()}
    assert f"{len(keys & found.keys())} of {len(keys)} runs" in told


def test_hours_are_cpu_time_where_it_was_measured(tmp_path: Path) -> None:
    table = replace(EPOCHS, entries=EPOCHS.entries[:2], seeds=(0,))
    found = {key: each for key, each in results().items() if key in {cells.key(config) for config in table.cells()}}
    measured, unmeasured = found.values()
    found[measured.key] = replace(measured, values=measured.values | {"cpu_seconds": 3600.0, "seconds": 9e9})
    old = {name: value for name, value in unmeasured.values.items() if name != "cpu_seconds"} | {"seconds": 7200.0}
    found[unmeasured.key] = replace(unmeasured, values=old)
    page.write(tmp_path / "results.md", Suite("toy", "A toy", (table,)), "cpu", found)
    assert "3.0 hours of training" in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(("scale", "costs"), [("paper", False), ("cpu", True)])
def test_details_are_folded_and_only_at_the_small_scale(scale: Scale, costs: bool, tmp_path: Path) -> None:
    page.write(tmp_path / "with.md", SUITE, "cpu", results())
    page.write(tmp_path / "without.md", replace(SUITE, costs=costs), scale, results())
    folded = (tmp_path / "with.md").read_text()
    assert folded.count("<details>") == folded.count("</details>") == 1
    assert "<details>" not in (tmp_path / "without.md").read_text()


def test_a_figure_without_runs_has_no_link(tmp_path: Path) -> None:
    suite = replace(SUITE, figures=(Figure("curves", "Curves", "test_accuracy", EPOCHS),))
    page.write(tmp_path / "results.md", suite, "cpu", {})
    assert ".svg" not in (tmp_path / "results.md").read_text()
    assert not (tmp_path / "results").exists()
