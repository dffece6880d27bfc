"""Candidate tables from folders of photos."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from papi.config import CandidatesConfig, RunConfig
from papi.errors import UserError
from papi.setup.data import load_dataset
from recipes import photo_candidates

PARTS = {"train": 4, "test": 2}
CLASSES = ("hat", "shirt, long", "shoes")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for part, count in PARTS.items():
        for name in CLASSES:
            folder = tmp_path / "photos" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(random.integers(0, 256, (9, 8, 3), np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("kind", ["uniform", "instance-dependent"])
def test_a_run_can_be_trained_on_the_table(
    photos: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPI_CACHE", str(tmp_path / "cache"))
    table = tmp_path / "table.csv"
    photo_candidates.main(photos, table, kind=kind, seed=1)  # type: ignore[arg-type]
    data = load_dataset(RunConfig(data=str(photos), candidates=CandidatesConfig(file=table)))
    assert (len(data.samples), data.class_names) == (12, CLASSES)
    assert data.test_labels is not None
    assert sorted(data.test_labels) == [0, 0, 1, 1, 2, 2]
    assert data.candidates is not None
    assert data.labels is not None
    assert data.candidates[np.arange(12), data.labels].all()
    assert data.candidates.sum() > 12


def test_the_same_seed_makes_the_same_table(photos: Path, tmp_path: Path) -> None:
    tables = [tmp_path / f"{number}.csv" for number in range(3)]
    for table, seed in zip(tables, (0, 0, 1), strict=True):
        photo_candidates.main(photos, table, flip_rate=0.5, seed=seed)
    texts = [table.read_text() for table in tables]
    assert texts[0] == texts[1] != texts[2]
    rows = list(csv.DictReader(texts[0].splitlines()))
    assert all(row["label"] in row["candidates"] for row in rows if row["split"] == "train")
    assert not any(row["candidates"] for row in rows if row["split"] == "test")


def test_photos_that_are_not_sorted_by_class(tmp_path: Path) -> None:
    (tmp_path / "alone.jpg").touch()
    with pytest.raises(UserError, match=r"alone\.jpg is not in such a folder"):
        photo_candidates.main(tmp_path, tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()
