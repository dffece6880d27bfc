"""Every number that is shown as the paper's is in the paper: `paper_numbers.csv` has what its tables say."""

import csv
from pathlib import Path

import pytest

from papi.experiments import SUITES
from papi.experiments.paper import FEW, MANY
from papi.experiments.suites import Place, Published

with (Path(__file__).parent / "paper_numbers.csv").open(newline="") as stream:
    NUMBERS = list(csv.DictReader(stream))

TABLES = {
    "tab:benchmark_result1": SUITES["paper"]["uniform"].tables[0],
    "tab:benchmark_result2": SUITES["paper"]["uniform"].tables[1],
    "tab:instance_dependent_result1": SUITES["paper"]["instance-dependent"].tables[0],
    "tab:variants_result1": SUITES["paper"]["ablation"].tables[0],
    "tab:da_result1": SUITES["paper"]["augmentation"].tables[0],
}


def rows_of(label: str) -> list[dict[str, str]]:
    return [row for row in NUMBERS if row["table"] == label]


def place(row: dict[str, str]) -> Place:
    return row["method"], row["data"], f"q = {row['rate']}" if row["rate"] else "instance-dependent"


@pytest.mark.parametrize("label", TABLES)
def test_our_numbers_are_theirs(label: str) -> None:
    theirs = {place(row): Published(float(row["mean"]), float(row["std"])) for row in rows_of(label)}
    assert len(theirs) == len(rows_of(label)), "a place stands for one number"
    assert TABLES[label].published == theirs


@pytest.mark.parametrize("label", TABLES)
def test_every_number_has_a_cell_and_every_cell_a_number(label: str) -> None:
    table = TABLES[label]
    cells = [(entry.label, task.data_label, task.label) for entry in table.entries for task in table.tasks]
    assert sorted(map(place, rows_of(label))) == sorted(cells)


def test_all_tables_are_compared() -> None:
    assert {row["table"] for row in NUMBERS} == TABLES.keys()
    assert {suite.name for suite in SUITES["paper"].values() if any(table.published for table in suite.tables)} == {
        "uniform", "instance-dependent", "ablation", "augmentation",
    }  # fmt: skip


@pytest.mark.parametrize(("label", "rates"), [("tab:benchmark_result1", FEW), ("tab:benchmark_result2", MANY)])
def test_rates_are_those_of_the_headers(label: str, rates: tuple[float, ...]) -> None:
    assert list(dict.fromkeys(float(row["rate"]) for row in rows_of(label))) == list(rates)


def test_numbers_are_percentages() -> None:
    for row in NUMBERS:
        assert 0 < float(row["std"]) < float(row["mean"]) < 100
