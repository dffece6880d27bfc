"""Answers of people as tables of candidates: the cells of each table, and the table of the docs."""

import json
from pathlib import Path

import pytest

from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from recipes.human_answers import KINDS, ROWS, TABLES, page_table, percentages, rows

FIRST, SECOND, NEVER = "Most Probable Class", "Second Most Probable Class", "Impossible Class(es)"


def answer(first: str, share: float, second: str = "No", other: float = 0.0, never: tuple[str, ...] = ()) -> dict:
    return {FIRST: first, f"{FIRST} Prob": share, SECOND: second, f"{SECOND} Prob": other, NEVER: list(never)}


def test_percentages_sum_to_one() -> None:
    assert percentages(answer("Cat", 60, "Dog", 20)) == pytest.approx({"cat": 0.75, "dog": 0.25})
    assert percentages(answer("Cat", 0)) == {"cat": 1.0}
    assert percentages(answer("Cat", float("nan"), "Dog", 3)) == pytest.approx({"cat": 0.25, "dog": 0.75})


def test_the_cells_of_each_table(tmp_path: Path) -> None:
    said = [
        answer("Cat", 60, "Dog", 20, ("Ship", "Truck", "Dog")),
        answer("Cat", 100, never=("Ship",)),
        answer("Frog", 50, never=("Ship", "Truck")),
    ]
    cells = rows(said)
    assert set(cells) == set(TABLES)
    assert cells["union"] == {"candidates": ["cat", "dog", "frog"]}
    assert cells["exclusions"] == {"excluded": ["ship", "truck"]}  # nobody excludes what somebody names
    weights = cells["weights"]["candidates"]
    assert weights == pytest.approx({"cat": 1.75 / 3, "dog": 0.25 / 3, "frog": 1 / 3}, abs=1e-6)
    names = ("cat", "dog", "frog", "ship", "truck")
    for table, size in (("union", 3), ("exclusions", 3), ("weights", 3)):
        path = tmp_path / f"{table}.jsonl"
        path.write_text(json.dumps({"file_name": "0.png", "label": "cat"} | cells[table]) + "\n")
        assert read_annotations(path, Rules(), names).candidates.sum() == size


def test_the_table_of_the_docs_comes_from_its_rows() -> None:
    found = [json.loads(line) for line in ROWS.read_text().splitlines()]
    page = (ROWS.parents[2] / "annotation-tools.md").read_text()
    assert page_table(found) in page
    assert {row["table"] for row in found} == {*KINDS, "heaviest"}
