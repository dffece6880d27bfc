"""What training shows in the terminal, from events made by hand."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from papi import train as run
from papi.cli import train_progress
from papi.cli.terminal import make_console
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.methods.config import Passes
from papi.runs.schema import EpochRow, Summary
from papi.training.engine import EpochEnded

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def console() -> Console:
    return make_console()


def started(dataset: Dataset, config: RunConfig | None = None, **changes: object) -> run.Started:
    settings = run.settings_for(config or RunConfig(data="toy"), dataset)
    facts: dict[str, object] = {
        "settings": settings,
        "dataset": dataset,
        "statistics": {"mean_candidates": 2.5, "singletons": 0.1, "full_sets": 0.02},
        "parameters": 12345,
        "passes": Passes(2, 2),
        "device": "cpu",
        "threads": 1,
        "processes": 1,
        "epoch": 0,
        "step": 0,
        "steps": 6,
        "problems": (),
    }
    return run.Started(**facts | changes)  # type: ignore[arg-type]


def summary(**changes: object) -> Summary:
    facts: dict[str, object] = {"method": "papi", "dataset": "toy", "seconds": 12.0, "epochs": 2}
    return Summary(**facts | changes)  # type: ignore[arg-type]


def test_what_is_announced(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    train_progress.announce(console, started(toy_dataset, problems=("a file is gone\x1b",)), Path("runs/x"))
    said = capsys.readouterr().out
    for fact in ("papi", "2 forward and 2 backward passes a step", "96 images", "4 classes", "2.50 candidate labels",
                 "12,345 parameters", "of 6 steps", "cpu", "runs/x", "a file is gone?"):  # fmt: skip
        assert fact in said, fact
    assert "continuing" not in said
    assert "covering rate" not in said
    assert "\x1b" not in said


def test_a_run_that_goes_on(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    config = RunConfig(data="toy", data_holdout=0.2)
    event = started(toy_dataset, config, epoch=3, step=4, processes=8)
    train_progress.announce(console, event, Path("runs/x"))
    said = capsys.readouterr().out
    assert "continuing in epoch 4 after step 4" in said
    assert "8 x cpu" in said
    assert "covering rate" in said


@pytest.mark.parametrize(
    ("method", "passes", "says"),
    [
        ("papi", Passes(2, 2), "passes=two: 2 forward and 2 backward passes a step"),
        ("proden", Passes(1, 1), "1 forward and 1 backward pass a step"),
        ("valen", Passes(2, 2, Passes(1, 1)), "1 forward and 1 backward pass a step, 2 forward and 2 backward passes"),
    ],
)
def test_what_a_step_costs(method: str, passes: Passes, says: str, toy_dataset: Dataset) -> None:
    event = started(toy_dataset, RunConfig(data="toy", method=method), passes=passes)
    assert train_progress.cost(event).startswith(says)


def test_the_row_of_an_epoch() -> None:
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
    assert train_progress.epoch_row(full).split() == [
        "1", "1.500", "50.00%", "25.00%", "75.00%", "12.50%", "100.00%", "3.2",
    ]  # fmt: skip
    bare = EpochRow(epoch=9, loss=2.0, seconds=100.0)
    assert train_progress.epoch_row(bare).split() == ["10", "2.000", "–", "–", "–", "–", "100.0"]


def test_columns_stand_below_their_names(toy_dataset: Dataset, console: Console, capsys: Out) -> None:
    for holdout, covering in ((None, None), (0.2, 0.5)):
        config = RunConfig(data="toy", data_holdout=holdout)
        train_progress.announce(console, started(toy_dataset, config), Path("x"))
        header = capsys.readouterr().out.splitlines()[-1]
        row = EpochRow(epoch=0, loss=1.0, seconds=1.0, test_accuracy=0.1, mean_confidence=0.2, covering_rate=covering)
        assert len(train_progress.epoch_row(row)) == len(header)


def test_the_result(console: Console, capsys: Out) -> None:
    result = summary(
        test_accuracy=0.9,
        test_accuracy_best=0.95,
        calibration_error=0.05,
        ambiguous_images=200,
        ambiguous_resolved=150,
        images_per_second=1234.5,
    )
    train_progress.conclude(console, result, Path("a run"), already=False)
    said = capsys.readouterr().out
    for fact in ("90.00% (last epoch", "95.00%", "5.00%", "200", "150", "75.00%", "12 s at 1,234 images/s"):
        assert fact in said, fact
    assert "already" not in said
    for command in ("papi report", "papi labels", "papi evaluate"):
        assert f"  {command} 'a run'" in said
    python = next(line.strip() for line in said.splitlines() if "python -c" in line)
    assert shlex.split(python)[-1] == 'import papi; print(papi.load("a run").class_names)'


def test_a_result_without_true_labels(console: Console, capsys: Out) -> None:
    train_progress.conclude(console, summary(), Path("run"), already=True)
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
    train_progress.conclude(console, picked, Path("run"), already=False)
    said = capsys.readouterr().out
    assert "epoch 5, picked by" in said
    assert value in said
    assert ("last epoch: 85.00%" in said) == tested


def test_a_calibrated_model(console: Console, capsys: Out) -> None:
    result = summary(calibration_error=0.01, uncalibrated_error=0.07, temperature=1.5)
    train_progress.conclude(console, result, Path("run"), already=False)
    said = capsys.readouterr().out
    assert "1.00% at temperature 1.500" in said
    assert "7.00%" in said


@pytest.mark.parametrize(
    ("environment", "says"), [({}, "papi"), ({"LOCAL_WORLD_SIZE": "4"}, "torchrun --nproc-per-node 4 -m papi")]
)
def test_how_it_was_started(environment: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert train_progress.launcher() == says


def test_signals_are_collected_and_put_back() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with train_progress.stop_signals() as received:
        assert received == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize(("world", "deadly"), [(None, 2), ("2", 3)])
def test_the_signal_that_ends_the_process(world: str | None, deadly: int) -> None:
    """A person who asks once more does not want to wait; `torchrun` repeats what every process has got."""
    code = (
        "import os, signal, sys\n"
        "from papi.cli.train_progress import stop_signals\n"
        "with stop_signals() as received:\n"
        "    for n in range(1, 6):\n"
        "        print(n, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_WORLD_SIZE"}
    environment |= {"LOCAL_WORLD_SIZE": world} if world else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == -signal.SIGINT
    assert done.stdout.split() == [str(n + 1) for n in range(deadly)]
    assert "Traceback" not in done.stderr


def test_events_in_their_order(toy_dataset: Dataset, tmp_path: Path, capsys: Out) -> None:
    asked: list[bool] = []

    def begin(stop: Callable[[], bool], prepare: Callable[[str, int, int], None]) -> Iterator[run.Event]:
        prepare("decoding images", 1, 2)
        yield started(toy_dataset)
        yield EpochEnded(EpochRow(epoch=0, loss=1.0, seconds=1.0))
        yield run.Saved(tmp_path / "checkpoint.pt")
        asked.append(stop())
        yield run.Finished(summary())

    train_progress.follow(tmp_path, begin)
    said = capsys.readouterr().out
    assert asked == [False]
    assert said.index("96 images") < said.index("    1   1.000") < said.index("Trained in")


def test_a_run_that_was_stopped(
    toy_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setattr("sys.argv", ["papi", "train", "--data", "my data", "--out", "x"])

    def begin(stop: Callable[[], bool], _: Callable[[str, int, int], None]) -> Iterator[run.Event]:
        yield started(toy_dataset)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        yield run.Stopped(1, 5)

    with pytest.raises(SystemExit) as end:
        train_progress.follow(tmp_path, begin)
    assert end.value.code == 128 + signal.SIGTERM
    said = capsys.readouterr().out
    assert "epoch 2 after step 5" in said
    assert said.splitlines()[-1].strip() == "papi train --data 'my data' --out x"
