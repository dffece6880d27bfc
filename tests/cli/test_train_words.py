"""What training says before, during and after, from events made by hand."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from papi.cli import train_words
from papi.cli.terminal import make_console
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.methods.config import Passes
from papi.runs.schema import EpochRow
from training_events import started, summary

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def console() -> Console:
    return make_console()


def test_what_is_announced(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    train_words.announce(console, started(toy_dataset, problems=("a file is gone\x1b",)), Path("runs/x"))
    said = capsys.readouterr().out
    for fact in ("papi", "2 forward and 2 backward passes per step", "96 images", "4 classes", "2.50 candidate labels",
                 "12,345 parameters", "of 6 steps", "cpu", "runs/x", "a file is gone?"):  # fmt: skip
        assert fact in said, fact
    assert "continuing" not in said
    assert "covering rate" not in said
    assert "\x1b" not in said


def test_a_run_that_goes_on(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    config = RunConfig(data="toy", data_holdout=0.2)
    event = started(toy_dataset, config, epoch=3, step=4, processes=8)
    train_words.announce(console, event, Path("runs/x"))
    said = capsys.readouterr().out
    assert "continuing in epoch 4 after step 4" in said
    assert "8 x cpu" in said
    assert "covering rate" in said


@pytest.mark.parametrize(
    ("method", "passes", "says"),
    [
        ("papi", Passes(1, 1), "passes=one: 1 forward and 1 backward pass per step"),
        ("proden", Passes(1, 1), "1 forward and 1 backward pass per step"),
        (
            "valen",
            Passes(2, 2, Passes(1, 1)),
            "1 forward and 1 backward pass per step, 2 forward and 2 backward passes",
        ),
    ],
)
def test_what_a_step_costs(method: str, passes: Passes, says: str, toy_dataset: Dataset) -> None:
    event = started(toy_dataset, RunConfig(data="toy", method=method), passes=passes)
    assert train_words.cost(event).startswith(says)


def test_the_row_of_an_epoch(toy_dataset: Dataset) -> None:
    full = EpochRow(
        epoch=0,
        loss=1.5,
        seconds=3.25,
        test_accuracy=0.5,
        prototype_accuracy=0.25,
        disambiguation_accuracy=0.75,
        mean_confidence=0.125,
        covering_rate=1.0,
    )
    columns = train_words.columns_of(started(toy_dataset, RunConfig(data="toy", data_holdout=0.2)))
    assert train_words.epoch_row(full, columns).split() == [
        "1", "1.500", "50.00%", "25.00%", "75.00%", "12.50%", "100.00%", "3.2",
    ]  # fmt: skip
    bare = EpochRow(epoch=9, loss=2.0, seconds=100.0)
    assert train_words.epoch_row(bare, columns[:4]).split() == ["10", "2.000", "–", "–", "–", "–", "100.0"]


def test_columns_stand_below_their_names(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    for holdout, covering in ((None, None), (0.2, 0.5)):
        event = started(toy_dataset, RunConfig(data="toy", data_holdout=holdout))
        train_words.announce(console, event, Path("x"))
        header = capsys.readouterr().out.splitlines()[-1]
        row = EpochRow(epoch=0, loss=1.0, seconds=1.0, test_accuracy=0.1, mean_confidence=0.2, covering_rate=covering)
        assert len(train_words.epoch_row(row, train_words.columns_of(event))) == len(header)


def test_there_are_no_columns_for_what_nobody_knows(toy_dataset: Dataset) -> None:
    blind = replace(toy_dataset, labels=None, test_labels=None, test_samples=None)
    assert [column.title for column in train_words.columns_of(started(blind))] == ["confidence"]
    untested = replace(toy_dataset, test_labels=None, test_samples=None)
    assert [column.title for column in train_words.columns_of(started(untested))] == ["resolved labels", "confidence"]


def test_rows_of_a_table_are_not_images_and_one_is_one(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    table = replace(toy_dataset, samples=np.zeros((96, 5), np.float32), test_samples=None, test_labels=None)
    train_words.announce(console, started(table, RunConfig(data="toy", epochs=1), steps=1), Path("x"))
    train_words.conclude(
        console, summary(kind="features", ambiguous_images=5, ambiguous_resolved=4), Path("x"), already=False
    )
    said = capsys.readouterr().out
    assert "96 rows" in said
    assert "candidate labels per row" in said
    assert "1 epoch of 1 step on cpu (1 thread)" in said
    assert "Of 5 training rows" in said
    assert "image" not in said


def test_classes_that_got_no_image_are_named(console: Console, capsys: Out) -> None:
    train_words.conclude(console, summary(resolved_by_class={"rose": 300, "tulip": 0}), Path("x"), already=False)
    said = capsys.readouterr().out
    assert "rose 300, tulip 0" in said
    assert "Warning: no image was resolved to tulip" in said
    train_words.conclude(console, summary(resolved_by_class={"rose": 300, "tulip": 1}), Path("x"), already=False)
    assert "Warning" not in capsys.readouterr().out


def test_prototypes_that_tell_nothing_are_named(console: Console, capsys: Out) -> None:
    train_words.conclude(console, summary(collapsed_prototypes=("rose", "tulip")), Path("x"), already=False)
    assert "Warning: the prototypes of rose, tulip are zero or identical" in capsys.readouterr().out


def test_a_run_that_ended_before_its_last_epoch(console: Console, capsys: Out) -> None:
    train_words.conclude(console, summary(epochs=20, trained_epochs=7.5), Path("x"), already=True)
    said = capsys.readouterr().out
    assert "after 7.5 of 20 epochs" in said
    assert "x/summary.json" in said


def test_nobody_is_told_to_do_what_happens_next_anyway(console: Console, capsys: Out) -> None:
    train_words.conclude(console, summary(), Path("x"), already=False, then_labels=True)
    assert "papi labels" not in capsys.readouterr().out


def test_the_result(console: Console, capsys: Out) -> None:
    result = summary(
        test_accuracy=0.9,
        test_accuracy_best=0.95,
        calibration_error=0.05,
        ambiguous_images=200,
        ambiguous_resolved=150,
        images_per_second=1234.5,
    )
    train_words.conclude(console, result, Path("a run"), already=False)
    said = capsys.readouterr().out
    for fact in ("90.00% (last epoch", "95.00%", "5.00%", "200", "150", "75.00%", "12 s at 1,234 images/s"):
        assert fact in said, fact
    assert "already" not in said
    for command in ("papi report", "papi labels", "papi evaluate"):
        assert f"  {command} 'a run'" in said
    python = next(line.strip() for line in said.splitlines() if "python -c" in line)
    assert shlex.split(python)[-1] == 'import papi; print(papi.load("a run").class_names)'


def test_next_steps_name_a_network_from_outside(console: Console, capsys: Out) -> None:
    result = summary(test_accuracy=0.9, test_accuracy_best=0.95)
    train_words.conclude(console, result, Path("run"), already=False, network="my.package:make")
    said = capsys.readouterr().out
    assert "  papi evaluate run --network my.package:make\n" in said
    assert 'papi.load("run", network="my.package:make")' in said
    train_words.conclude(console, result, Path("run"), already=False, network="timm:resnet18")
    assert "resnet18" not in capsys.readouterr().out


def test_a_result_without_true_labels(console: Console, capsys: Out) -> None:
    train_words.conclude(console, summary(), Path("run"), already=True)
    said = capsys.readouterr().out
    assert "already complete" in said
    assert "accuracy" not in said
    assert "papi evaluate" not in said
    assert "Trained in 12 s\n" in said


@pytest.mark.parametrize(
    ("rule", "value"), [("covering-rate", "covering rate of 80.00%"), ("approximated-accuracy", "accuracy of 70.00%")]
)
@pytest.mark.parametrize("tested", [True, False])
def test_why_that_epoch(rule: str, value: str, tested: bool, console: Console, capsys: Out) -> None:
    known = {"test_accuracy": 0.9, "test_accuracy_last": 0.85, "test_accuracy_best": 0.9} if tested else {}
    picked = summary(select=rule, picked_epoch=4, covering_rate=0.8, approximated_accuracy=0.7, **known)
    train_words.conclude(console, picked, Path("run"), already=False)
    said = capsys.readouterr().out
    assert "epoch 5, selected by" in said
    assert value in said
    assert ("last epoch: 85.00%" in said) == tested


def test_a_calibrated_model(console: Console, capsys: Out) -> None:
    result = summary(calibration_error=0.01, uncalibrated_error=0.07, temperature=1.5)
    train_words.conclude(console, result, Path("run"), already=False)
    said = capsys.readouterr().out
    assert "1.00% at temperature 1.500" in said
    assert "7.00%" in said
