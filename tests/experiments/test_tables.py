"""Tables from results with known numbers."""

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_results import ACCURACIES, COMPUTE, ENTRIES, EPOCHS, SUITE, TASK, result, results

from papi.experiments import tables
from papi.experiments.paper import CEILING, DPLL, PAPI, PRODEN
from papi.experiments.suites import Published, Suite


def by_label(sheet: tables.Sheet) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in sheet.rows}


def test_means_and_differences() -> None:
    (sheet,) = tables.overviews(EPOCHS, results())
    rows = by_label(sheet)
    slow = [80.0, 83.0, 86.0]
    mean = sum(slow) / 3
    std = (sum((value - mean) ** 2 for value in slow) / 3) ** 0.5
    assert rows["PaPi"] == (f"{mean:.2f} ± {std:.2f}",) == ("83.00 ± 2.45",)
    assert rows["Best minus runner-up, by seed"] == ("+1.00, -1.00, +4.00 (PaPi − DPLL)",)
    assert rows["Best minus ceiling"] == ("-8.00",)
    assert sheet.bold == {(1, 1)}  # PaPi: the ceiling takes no part


def test_details_stand_side_by_side() -> None:
    (sheet,) = tables.details(SUITE, results())
    rows = by_label(sheet)
    assert sheet.header[:2] == ("Method", "Units")
    assert rows["PaPi"] == (
        "10", "2", "83.00 ± 2.45", "+1.00, -1.00, +4.00", "-8.00", "31",
        "2", "83.00 ± 2.45", "+1.00, -1.00, +4.00", "–", "31",
    )  # fmt: skip
    assert rows["PRODEN"][:6] == ("3", "2", "70.00 ± 0.00", "-10.00, -13.00, -16.00", "-21.00", "31")
    assert rows["PRODEN"][6:] == ("7", "–", "–", "–", "–")  # 20 units are nearest to seven epochs of three


def test_times_of_several_kinds_of_processors_are_told_apart() -> None:
    found = results()
    (slow,) = [each for each in found.values() if each.config.method == "papi" and each.config.seed == 2]
    made = replace(slow.made, versions={"processor": "old"})
    found[slow.key] = replace(slow, values=slow.values | {"cpu_seconds": 99.0}, made=made)
    rows = by_label(tables.details(SUITE, found)[0])
    assert rows["PaPi"][5] == "99 (old), 31 (unknown)"
    assert rows["PRODEN"][5] == "31 (unknown)"


def test_unfinished_cells_are_marked_and_those_with_fewer_runs_take_no_part() -> None:
    some = {key: each for key, each in results().items() if each.config.method != "dpll" or each.config.seed == 1}
    (sheet,) = tables.overviews(EPOCHS, some)
    assert by_label(sheet)["DPLL"] == ("84.00 (1/3)",)
    none = {key: each for key, each in some.items() if each.config.method != "dpll"}
    (sheet,) = tables.overviews(EPOCHS, none)
    assert by_label(sheet)["DPLL"] == ("–",)
    (sheet,) = tables.overviews(EPOCHS, {})
    assert sheet.bold == frozenset()
    assert by_label(sheet)["Best minus runner-up, by seed"] == ("–",)


def test_the_papers_number_and_the_difference_stand_beside() -> None:
    table = replace(EPOCHS, published={("PaPi", "fashion-mini", "q = 0.5"): Published(82.5, 0.1)})
    (sheet,) = tables.overviews(table, results())
    assert by_label(sheet)["PaPi"] == ("83.00 ± 2.45 (paper 82.50 ± 0.10, +0.50)",)
    (sheet,) = tables.overviews(table, {})
    assert by_label(sheet)["PaPi"] == ("– (paper 82.50 ± 0.10)",)


def test_costs() -> None:
    table = replace(EPOCHS, entries=(PAPI,), seeds=(0,))
    sheets = tables.sheets(Suite("cost", "Cost", (table,), costs=True), results(), detailed=True)
    steps = 2 * -(-10_000 // 64)
    assert sheets[1].rows == (("PaPi", f"{31.4 / steps:.4f}"),)
    assert sheets[2].rows == (("PaPi", "–"),)  # these runs did not measure their memory


accuracies = st.lists(st.floats(0, 1), min_size=3, max_size=3)


@given(st.tuples(*[accuracies] * len(ENTRIES)), st.sets(st.integers(0, 3 * len(ENTRIES) - 1)))
def test_the_best_is_the_highest_mean_of_those_that_compete(values: tuple[list[float], ...], missing: set[int]) -> None:
    found = {}
    for number, (entry, seed) in enumerate((entry, seed) for entry in ENTRIES for seed in range(3)):
        if number not in missing:
            each = result(EPOCHS, entry, seed, values[ENTRIES.index(entry)][seed])
            found[each.key] = each
    column = tables.column(EPOCHS, TASK, found)
    rivals = [entry for entry in ENTRIES if not entry.ceiling]
    ranked = tables.ranking(column)
    (sheet,) = tables.overviews(EPOCHS, found)
    assert all(len(row) == len(sheet.header) for row in sheet.rows)
    most = max(len(column[entry].runs) for entry in rivals)
    rivals = [entry for entry in rivals if len(column[entry].runs) == most > 0]
    if not rivals:
        assert ranked == []
        assert sheet.bold == frozenset()
        return
    means = {
        entry: statistics.mean(100 * run.values["test_accuracy"] for run in column[entry].runs.values())
        for entry in rivals
    }
    assert sorted(ranked, key=rivals.index) == rivals
    assert means[ranked[0]] == max(means.values())
    assert sheet.bold == {(ENTRIES.index(ranked[0]), 1)}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_mean_and_deviation_are_those_of_all_values(values: list[float]) -> None:
    mean, *deviation = map(float, tables.spread(values).split(" ± "))
    assert mean == pytest.approx(sum(values) / len(values), abs=0.0051)
    if len(values) == 1:
        assert deviation == []
    else:
        squares = sum((value - sum(values) / len(values)) ** 2 for value in values)
        assert deviation == [pytest.approx((squares / len(values)) ** 0.5, abs=0.0051)]


def test_differences_are_of_equal_seeds() -> None:
    """A seed that only one of the two has is left out."""
    some = {key: each for key, each in results().items() if each.config.method != "dpll" or each.config.seed != 1}
    column = tables.column(EPOCHS, TASK, some)
    assert tables.to_best_other(column, PAPI) == "+10.00, +13.00, +16.00"  # to PRODEN: DPLL has too few runs
    assert tables.to_best_other(column, DPLL) == "-1.00, -4.00"
    assert tables.to_ceiling(column, PRODEN) == "-21.00"
    assert tables.to_ceiling(column, CEILING) == ""


def test_nothing_is_compared_with_a_ceiling_that_the_table_does_not_have() -> None:
    table = replace(EPOCHS, entries=ENTRIES[1:])
    (sheet,) = tables.overviews(table, results())
    assert "Best minus ceiling" not in by_label(sheet)
    (sheet,) = tables.details(Suite("toy", "A toy", (table,)), results())
    assert "to the ceiling" not in sheet.header
    assert all(len(row) == len(sheet.header) for row in sheet.rows)


def test_the_winner_stays_bold_where_empty_columns_are_dropped() -> None:
    table = replace(EPOCHS, entries=ENTRIES[1:])
    (sheet,) = tables.details(Suite("toy", "A toy", (table,)), results())
    ((row, place),) = sheet.bold
    assert sheet.header[place] == "accuracy"
    assert sheet.rows[row][0] == "PaPi"


def test_a_sheet_for_each_dataset() -> None:
    other = replace(TASK, data="digits", data_label="digits")
    sheets = tables.overviews(replace(EPOCHS, tasks=(TASK, other)), results())
    assert [sheet.title for sheet in sheets] == ["fashion-mini: equal epochs", "digits: equal epochs"]
    assert by_label(sheets[0])["PaPi"] != by_label(sheets[1])["PaPi"] == ("–",)


def test_details_are_for_those_who_ask() -> None:
    brief, long = (tables.sheets(SUITE, results(), detailed=detailed) for detailed in (False, True))
    assert long[: len(brief)] == brief
    assert len(brief) == len(SUITE.tables)
    assert len(long) == len(brief) + 1  # one task


def test_a_run_counts_only_in_the_table_of_its_length() -> None:
    found = results(COMPUTE)
    assert tables.outcome(COMPUTE, PRODEN, TASK, found).complete
    assert not tables.outcome(EPOCHS, PRODEN, TASK, found).runs
    assert ACCURACIES[PRODEN][0] == tables.outcome(COMPUTE, PRODEN, TASK, found).runs[0].values["test_accuracy"]
