"""`papi labels` on runs of the toy problem."""

import csv
from pathlib import Path

import numpy as np
import pytest

from command import papi_exit_code
from papi import train as run
from papi.cli.labels import COLUMNS, labels
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.runs.folder import RunFolder


def train(data: Dataset, folder: Path, method: str) -> np.ndarray:
    assert data.labels is not None
    mask = generators.uniform(data.labels, len(data.class_names), 0.3, 0)
    config = RunConfig(data="toy", method=method, epochs=2, batch_size=20, threads=1, device="cpu")
    list(run.fit(data, mask, run.settings_for(config, data), RunFolder(folder)))
    return mask


def read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("method", ["papi", "cc"])
def test_every_image_has_its_row(toy_dataset: Dataset, tmp_path: Path, method: str) -> None:
    mask = train(toy_dataset, tmp_path, method)
    labels(tmp_path)
    rows = read(tmp_path / "labels.csv")
    assert tuple(rows[0]) == COLUMNS
    assert [int(row["index"]) for row in rows] == list(range(96))
    assert sorted(int(row["second_look_rank"]) for row in rows) == list(range(1, 97))
    confidence = RunFolder(tmp_path).read_arrays().confidence
    for i, row in enumerate(rows):
        names = [toy_dataset.class_names[k] for k in np.flatnonzero(mask[i])]
        assert row["candidates"].split("|") == names
        assert row["label"] == toy_dataset.class_names[confidence[i].argmax()]
        assert row["second_choice"] in names if len(names) > 1 else row["second_choice"] == ""
        assert row["classifiers_agree"] in (("yes", "no") if method == "papi" else ("",))


def test_rows_of_a_table_are_found_again(tmp_path: Path) -> None:
    """A fifth is held out for testing: the others keep the place that they have in the table."""
    draws = np.random.default_rng(0)
    sets = draws.random((60, 6)) < 0.5
    truth = draws.integers(0, 6, 60)
    sets[np.arange(60), truth] = True
    given = ["|".join("abcdef"[k] for k in np.flatnonzero(row)) for row in sets]
    lines = [f"{i},{i * i % 7},{names},{'abcdef'[truth[i]]}" for i, names in enumerate(given)]
    (tmp_path / "mine.csv").write_text("\n".join(["x,y,candidates,label", *lines]) + "\n")
    options = ("--epochs", 1, "--threads", 1, "--device", "cpu")
    assert papi_exit_code("train", "--data", tmp_path / "mine.csv", "--out", tmp_path / "run", *options) == 0
    labels(tmp_path / "run")
    rows = read(tmp_path / "run" / "labels.csv")
    assert len(rows) == 48
    assert [row["candidates"] for row in rows] == [given[int(row["row"])] for row in rows]
    assert [int(row["row"]) for row in rows] != list(range(48))


def test_file_names_and_awkward_class_names(toy_dataset: Dataset, tmp_path: Path) -> None:
    from dataclasses import replace

    files = tuple(f'a, "{i}".png' for i in range(96))
    data = replace(toy_dataset, file_names=files, class_names=("<b>", 'say "x"', "a,b", "line\nbreak"))
    train(data, tmp_path, "papi")
    labels(tmp_path, out=tmp_path / "elsewhere.csv")
    rows = read(tmp_path / "elsewhere.csv")
    assert [row["file"] for row in rows] == list(files)
    assert {row["row"] for row in rows} == {""}
    assert {row["label"] for row in rows} <= set(data.class_names)


def test_runs_that_are_not_there_or_not_finished(toy_dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not contain a run"):
        labels(tmp_path)
    train(toy_dataset, tmp_path, "cc")
    for name in ("arrays.npz", "checkpoint.pt", "checkpoint.previous.pt"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(UserError, match="has not saved a checkpoint"):
        labels(tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epochs", 3), "--fix"),
        (("--fix", "decisions.csv", "--out", "labels.csv"), "labels.csv"),
        (("--fix", "decisions.csv", "--epochs", 0), "--epochs must be 1 or more"),
    ],
)
def test_options_that_do_not_fit(
    options: tuple[object, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert papi_exit_code("labels", tmp_path, *options) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())
