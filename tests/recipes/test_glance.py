"""The figure at a glance shows what the tables hold."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
from toy_results import result

from papi.experiments import SUITES
from papi.experiments.cpu import BUDGET, ONE_PASS, RATES
from papi.experiments.paper import LWS, PAPI, PRODEN
from papi.experiments.results import Results
from papi.experiments.suites import Table
from recipes import glance
from recipes.overview import entries

TABLE = Table("equal compute", entries(), RATES, units=BUDGET)
EPOCHS, *_ = SUITES["cpu"]["uniform"].tables


@pytest.fixture
def found() -> Results:
    ran = [
        *(result(TABLE, PRODEN, seed, 0.9 - task.flip_rate / 10, task) for task in RATES for seed in range(3)),
        *(result(TABLE, ONE_PASS, seed, 0.88, RATES[-1]) for seed in range(3)),
        *(result(EPOCHS, PRODEN, seed, 0.8, RATES[-1]) for seed in range(3)),
        *(result(TABLE, LWS, seed, 0.3, RATES[-1]) for seed in range(3)),
        result(TABLE, PAPI, 0, 0.99, RATES[-1]),
    ]
    return {each.key: each for each in ran}


def test_points_are_means_of_finished_cells(found: Results) -> None:
    rates, spent = glance.by_ambiguity(found), glance.by_compute(found)
    assert [x for x, _ in rates[PRODEN]] == [task.flip_rate for task in RATES]
    assert [y for _, y in rates[PRODEN]] == pytest.approx([90 - 10 * task.flip_rate for task in RATES])
    assert [x for x, _ in spent[PRODEN]] == [36, BUDGET]
    assert [y for _, y in spent[PRODEN]] == pytest.approx([80, 83])
    assert PAPI not in rates  # one seed of three


def test_lines_are_drawn_and_named_at_their_ends(found: Results) -> None:
    left, right = glance.draw(found).axes
    for axes, lines in ((left, glance.by_ambiguity(found)), (right, glance.by_compute(found))):
        drawn = {tuple(line.get_ydata()) for line in axes.get_lines()}
        assert drawn == {tuple(y for _, y in line) for entry, line in lines.items() if entry != LWS}
        assert {text.get_text() for text in axes.texts} == {"PRODEN", "PaPi, one pass"}
    assert glance.hidden(found) == ["LWS"]


def test_names_do_not_lie_on_each_other() -> None:
    labels = [(80.0, "a", ""), (80.1, "b", ""), (80.2, "c", ""), (90.0, "d", "")]
    places = glance.apart(labels, 10.0)
    gaps = [high - low for low, high in pairwise(places)]
    assert min(gaps) >= 0.04 * 10
    assert places[-1] == 90
    assert sum(places[:3]) / 3 == pytest.approx(80.1)


def test_the_files_carry_the_numbers(found: Results, tmp_path: Path) -> None:
    name = glance.write(found, tmp_path)
    root = ElementTree.parse(tmp_path / name).getroot()
    (told,) = root.iter("{http://purl.org/dc/elements/1.1/}description")
    assert told.text == glance.description(found)
    assert "PRODEN: 36 80.00, 120 83.00" in str(told.text)
    assert (tmp_path / name).with_suffix(".png").stat().st_size > 1000
