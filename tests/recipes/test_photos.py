"""The table of docs/photos.md."""

import json
from pathlib import Path

import pytest

from recipes import photos


def result(row: str, kind: str, accuracy: float, seed: int = 0) -> photos.Values:
    return {"row": row, "kind": kind, "seed": seed, "test_accuracy": accuracy, "cpu_seconds": 2.0, "peak_memory": 6e8}


def test_the_page_shows_the_rows_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "photos.md"
    page.write_text(photos.PAGE.read_text())
    monkeypatch.setattr(photos, "PAGE", page)
    photos.main(tables_only=True)
    assert page.read_text() == photos.DOCS.joinpath("photos.md").read_text()


def test_means_and_spreads() -> None:
    default = next(row.name for row in photos.TABLE if row.method == "papi")
    told = photos.table([result(default, "q = 0.5", 0.5), result(default, "q = 0.5", 0.7, seed=1)])
    assert told.splitlines()[-1] == f"| {default} | – | 60.0 ± 14.1 | – | – | – | 2 | 0.6 GB |"


def test_true_labels_do_not_depend_on_candidates() -> None:
    told = photos.table([result(photos.TABLE[0].name, "q = 0.5", 0.9)])
    assert told.splitlines()[-1].count("90.0") == len(photos.KINDS)


def test_results_that_are_kept_count_as_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr(photos, "ROWS", rows)
    row = photos.Row("mine", kinds=("q = 0.3",), seeds=(0,))
    photos.keep(result("mine", "q = 0.3", 0.9))
    assert [json.loads(line)["row"] for line in rows.read_text().splitlines()] == ["mine"]
    assert list(photos.measure(row, tmp_path, "no:network", tmp_path)) == []
