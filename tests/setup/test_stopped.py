"""A run that was stopped is of use: its labels, its predictions, and an end where it is."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import papi
from command import papi_exit_code
from papi import train as run
from papi.config import CandidatesConfig, RunConfig
from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.setup.stopped import is_stopped, open_stopped
from toy_data import write_toy_npz

Out = pytest.CaptureFixture[str]
STEPS = 3  # in an epoch, of 96 images


def config_of(data: Path, **changes: object) -> RunConfig:
    facts: dict[str, object] = {"method": "proden", "epochs": 4, "batch_size": 32, "threads": 1, "device": "cpu"}
    return RunConfig(data=str(data), candidates=CandidatesConfig(flip_rate=0.3), **facts | changes)  # type: ignore[arg-type]


def after(steps: int) -> Callable[[], bool]:
    """Asks to stop after so many steps."""
    asked = iter(range(10**6))
    return lambda: next(asked) + 1 >= steps


def stop(config: RunConfig, folder: Path, steps: int) -> Path:
    *_, last = run.train(config, folder, after(steps))
    assert isinstance(last, run.Stopped)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_npz(tmp_path_factory.mktemp("data") / "toy.npz")


@pytest.fixture(scope="module")
def stopped(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped in its third epoch, after two of three steps."""
    return stop(config_of(data), tmp_path_factory.mktemp("runs") / "run", 2 * (STEPS + 1) + 2)


@pytest.fixture
def untouched(stopped: Path) -> Iterator[None]:
    before = {file.name: file.read_bytes() for file in stopped.iterdir() if file.suffix != ".csv"}
    yield
    assert before == {file.name: file.read_bytes() for file in stopped.iterdir() if file.suffix != ".csv"}


def test_labels_of_a_run_that_was_stopped(stopped: Path, untouched: None, tmp_path: Path, capsys: Out) -> None:
    assert is_stopped(stopped)
    assert papi_exit_code("labels", stopped, "--out", tmp_path / "labels.csv") == 0
    assert "is unfinished; using its last checkpoint, in epoch 3 of 4" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    trained, _ = open_stopped(stopped)
    best = np.where(RunFolder(stopped).read_sets().candidates, trained.arrays.confidence, -1).argmax(1)
    assert [row["label"] for row in rows] == [f"bar {k}" for k in best]


def test_predictions_of_a_run_that_was_stopped(stopped: Path, untouched: None, tmp_path: Path, capsys: Out) -> None:
    images = np.zeros((5, 8, 8), np.uint8)
    np.save(tmp_path / "images.npy", images)
    assert papi_exit_code("predict", stopped, tmp_path / "images.npy", "--out", tmp_path / "out.csv") == 0
    assert "its last checkpoint, in epoch 3 of 4" in capsys.readouterr().err
    trained, _ = open_stopped(stopped)
    model = papi.Model(trained.method.network, trained.card, next(trained.method.network.parameters()).device)
    labels = [row["label"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    assert labels == model.predict(images).tolist()


@pytest.mark.parametrize("steps", [2, STEPS + 1, 2 * (STEPS + 1) + 1])
def test_a_run_can_be_ended_where_it_is(steps: int, data: Path, tmp_path: Path, capsys: Out) -> None:
    """In its first epoch, between two, and in a later one. What is kept agrees, and the doctor finds nothing."""
    folder = stop(config_of(data), tmp_path / "run", steps)
    trained, _ = open_stopped(folder)
    *_, finished = run.train(config_of(data), folder, finish_now=True)
    assert isinstance(finished, run.Finished)
    kept = RunFolder(folder)
    _, arrays = kept.read_kept()
    np.testing.assert_array_equal(arrays.confidence, trained.arrays.confidence)
    done = steps // (STEPS + 1) + steps % (STEPS + 1) / STEPS
    assert finished.summary.trained_epochs == pytest.approx(done)
    rows = kept.read_rows()
    assert len(rows) == int(np.ceil(done))
    assert finished.summary.test_accuracy == rows[-1].test_accuracy
    answers = papi.load(folder).predict(np.load(data)["test_images"])
    right = answers == np.array([f"bar {k}" for k in np.load(data)["test_labels"]])
    assert right.mean() == finished.summary.test_accuracy
    assert papi_exit_code("doctor", folder) == 0
    assert papi_exit_code("report", folder) == 0
    capsys.readouterr()
    *_, again = run.train(config_of(data), folder)
    assert isinstance(again, run.Finished)
    assert again.already


def test_ending_a_run_loses_nothing(data: Path, tmp_path: Path) -> None:
    """Without its summary, the run goes on and ends bit-equal to one that was never stopped."""
    folder = stop(config_of(data), tmp_path / "run", STEPS + 2)
    list(run.train(config_of(data), folder, finish_now=True))
    (folder / "summary.json").unlink()
    list(run.train(config_of(data), folder))
    list(run.train(config_of(data), tmp_path / "whole"))
    for name in ("model.safetensors", "arrays.npz"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert [row.loss for row in RunFolder(folder).read_rows()] == [
        row.loss for row in RunFolder(tmp_path / "whole").read_rows()
    ]


def test_there_must_be_something_to_end(data: Path, tmp_path: Path, capsys: Out) -> None:
    assert papi_exit_code("train", "--data", data, "--finish-now", "--out", tmp_path / "none") == 2
    assert "does not contain an interrupted run" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    folder = tmp_path / "begun"
    folder.mkdir()
    assert papi_exit_code("labels", folder) == 2
    assert not is_stopped(folder)


def test_what_was_picked_so_far_is_used(data: Path, tmp_path: Path) -> None:
    config = config_of(data, select="covering-rate", data_holdout=0.2)
    folder = stop(config, tmp_path / "run", 2 * (STEPS + 1))
    trained, _ = open_stopped(folder)
    *_, finished = run.train(config, folder, finish_now=True)
    assert isinstance(finished, run.Finished)
    np.testing.assert_array_equal(RunFolder(folder).read_arrays().confidence, trained.arrays.confidence)


def test_a_damaged_checkpoint_is_passed_over_and_stays(stopped: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in stopped.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "checkpoint.pt").write_bytes(b"half")
    _, note = open_stopped(copy)
    assert "after epoch 2 of 4" in note
    assert (copy / "checkpoint.pt").read_bytes() == b"half"
    (copy / "checkpoint.previous.pt").write_bytes(b"half")
    with pytest.raises(UserError, match="no readable checkpoint"):
        open_stopped(copy)


def test_other_data_are_refused(data: Path, tmp_path: Path) -> None:
    own = tmp_path / "toy.npz"
    own.write_bytes(data.read_bytes())
    folder = stop(config_of(own), tmp_path / "run", 2)
    arrays = dict(np.load(own))
    arrays["images"][0] += 1
    np.savez(own, **arrays)
    with pytest.raises(UserError, match="have changed since"):
        open_stopped(folder)


def test_code_from_outside_is_not_run_because_a_file_names_it(stopped: Path, tmp_path: Path, capsys: Out) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in stopped.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    record = json.loads((copy / "config.json").read_text())
    record["config"]["network"] = "evil:network"
    (copy / "config.json").write_text(json.dumps(record))
    for command in (["labels", copy], ["predict", copy, copy]):
        assert papi_exit_code(*command) == 2
        assert "code from outside PaPi" in capsys.readouterr().err
