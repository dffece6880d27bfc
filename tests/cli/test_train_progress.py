"""What training shows in the terminal, from events made by hand."""

import os
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
from papi.data.dataset import Dataset
from papi.runs.schema import EpochRow
from papi.training.engine import EpochEnded
from training_events import started, summary

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def console() -> Console:
    return make_console()


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
