"""SIGKILL at any moment costs time alone: the model and the rows are those of a run that was left alone."""

import random
import signal
from pathlib import Path

import pytest
from preloaded import Preloaded
from tiny_runs import damage, kill_often, result, train, training_seconds, write_data

from papi.methods import METHODS

KILLS = 3  # of each method


@pytest.mark.parametrize("method", METHODS)
def test_killed_at_random_moments(processes: Preloaded, tmp_path: Path, method: str) -> None:
    data = write_data(tmp_path / "data.npz")
    twin = processes.run(*train(data, tmp_path / "twin", method), output=tmp_path / "said")
    assert twin.code == 0, twin.said
    seconds = training_seconds(tmp_path / "twin")
    chance = random.Random(f"{method} 0")
    kill_often(processes, train(data, tmp_path / "parts", method), tmp_path / "parts", KILLS, seconds, chance)
    assert result(tmp_path / "parts") == result(tmp_path / "twin")


def test_there_are_kills_enough() -> None:
    assert KILLS * len(METHODS) >= 25


@pytest.fixture(scope="module")
def twin(processes: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was left alone, with its data beside it."""
    place = tmp_path_factory.mktemp("twin")
    child = processes.run(*train(write_data(place / "data.npz"), place / "twin", epochs=1), output=place / "said")
    assert child.code == 0, child.said
    return place / "twin"


def assert_survives(processes: Preloaded, twin: Path, folder: Path, **faults: object) -> None:
    """Killed by the fault, continued without: as if nothing had been."""
    command = train(twin.with_name("data.npz"), folder, epochs=1)
    killed = processes.run(*command, output=folder.with_name("said"), **faults)
    assert killed.code in (-signal.SIGKILL, -signal.SIGXFSZ), killed.said
    assert damage(folder) == []
    again = processes.run(*command, output=folder.with_name("said"))
    assert again.code == 0, again.said
    assert result(folder) == result(twin)


# What is written, in order: candidates, config, rows, the checkpoint after the first step, the row and checkpoint of
# the epoch, model, arrays, summary; each is a flush, a rename (two for a second checkpoint) and a flush of the folder.
ALL_CALLS = 27
SOME_CALLS = (1, 2, 5, 10, 11, 12, 14, 15, 16, 20, 26)


@pytest.mark.parametrize("call", SOME_CALLS)
def test_killed_between_two_steps_of_a_write(processes: Preloaded, twin: Path, tmp_path: Path, call: int) -> None:
    assert_survives(processes, twin, tmp_path / "run", kill_at=call)


@pytest.mark.slow
@pytest.mark.parametrize("call", range(1, ALL_CALLS + 1))
def test_killed_at_every_step_of_every_write(processes: Preloaded, twin: Path, tmp_path: Path, call: int) -> None:
    assert_survives(processes, twin, tmp_path / "run", kill_at=call)


@pytest.mark.parametrize("file", ["checkpoint.pt", "metrics.jsonl", "model.safetensors"])
def test_killed_in_the_middle_of_a_write(processes: Preloaded, twin: Path, tmp_path: Path, file: str) -> None:
    """The system ends the process when half of the file is written."""
    half = (twin / file).stat().st_size // 2
    limit = {"file": file, "time": 1 if file == "model.safetensors" else 2, "bytes": half, "kill": True}
    assert_survives(processes, twin, tmp_path / "run", limit=limit)
