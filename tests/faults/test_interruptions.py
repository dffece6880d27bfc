"""Signals, a second process in the folder, a clock that goes back, half a row, another number of threads."""

import os
import shlex
import shutil
import signal
import time
from pathlib import Path

import pytest
from preloaded import Preloaded
from tiny_runs import damage, result, train, wait_for, write_data

from papi.files import lock
from papi.runs.folder import RunFolder

FOR_EVER = 100_000  # epochs


@pytest.fixture(scope="module")
def place(processes: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`twin`, a run that was left alone, and `stopped`, the same run with the state of its first step."""
    place = tmp_path_factory.mktemp("runs")
    data = write_data(place / "data.npz")
    assert processes.run(*train(data, place / "twin"), output=place / "said").code == 0
    first, second, *_ = (place / "twin" / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    limit = {"file": "metrics.jsonl", "time": 3, "bytes": len(first) + len(second) // 2}
    assert processes.run(*train(data, place / "stopped"), output=place / "said", limit=limit).code == 2
    return place


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_says_how_to_go_on(
    processes: Preloaded, place: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "run"
    command = train(place / "data.npz", folder, epochs=6, every="600s")
    child = processes.start(*command, output=tmp_path / "said")
    wait_for(folder / "metrics.jsonl", child)
    child.send(number)
    assert child.wait() == code, child.said
    assert damage(folder) == []
    assert not (folder / "run.lock").exists()
    printed = child.said.partition("Continue with:\n")[2].strip()
    assert printed == f"papi {shlex.join(map(str, command))}"
    again = processes.run(*shlex.split(printed)[1:], output=tmp_path / "said")
    assert again.code == 0, again.said
    assert "continuing in epoch" in again.said
    assert processes.run(*train(place / "data.npz", tmp_path / "twin", epochs=6), output=tmp_path / "said").code == 0
    assert result(folder) == result(tmp_path / "twin")


def test_a_second_interrupt_stops_at_once(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = train(place / "data.npz", folder, method="sleeping:Sleeping")
    child = processes.start(*command, output=tmp_path / "said", folder=str(tmp_path))
    wait_for(tmp_path / "asleep", child)
    child.send(signal.SIGINT)
    time.sleep(0.5)  # two signals that wait together would be one
    assert lock.holder(folder)[1], "the first interrupt lets the step go on"
    child.send(signal.SIGINT)
    assert child.wait() == -signal.SIGINT
    assert not lock.holder(folder)[1]
    assert "Traceback" not in child.said
    assert damage(folder) == []


def test_a_second_process_is_refused(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = train(place / "data.npz", folder, epochs=FOR_EVER)
    first = processes.start(*command, output=tmp_path / "first")
    wait_for(folder / "checkpoint.pt", first)
    second = processes.run(*command, output=tmp_path / "second")
    assert second.code == 2
    assert second.said.startswith(f"papi: {folder} is in use by process {first.pid} on {os.uname().nodename} since 2")
    assert second.said.count("\n") == 1
    examined = processes.run("doctor", folder, output=tmp_path / "second")
    assert examined.code == 0, examined.said
    assert f"in use by process {first.pid}" in examined.said
    first.send(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    examined = processes.run("doctor", folder, output=tmp_path / "second")
    assert examined.code == 0, examined.said
    assert f"left by process {first.pid}" in examined.said
    third = processes.start(*command, output=tmp_path / "third")
    deadline = time.monotonic() + 60
    while "continuing in epoch" not in third.said and time.monotonic() < deadline:
        time.sleep(0.01)
    third.send(signal.SIGTERM)
    assert third.wait() == 143, third.said


def test_two_started_at_once(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    command = train(place / "data.npz", tmp_path / "run")
    both = [processes.start(*command, output=tmp_path / f"said{k}") for k in range(2)]
    codes = sorted(child.wait() for child in both)
    # The later one is refused; if it is much later, it finds a finished run.
    assert codes in ([0, 2], [0, 0]), [child.said for child in both]
    assert sum("Trained in" in child.said and "already" not in child.said for child in both) == 1
    assert all("is in use by process" in child.said for child in both if child.code == 2)
    assert result(tmp_path / "run") == result(place / "twin")


def test_a_clock_that_goes_back(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    child = processes.run(*train(place / "data.npz", tmp_path / "run"), output=tmp_path / "said", clock_back=3600.0)
    assert child.code == 0, child.said
    assert result(tmp_path / "run") == result(place / "twin")
    rows = RunFolder(tmp_path / "run").read_rows()
    assert 0 < rows[0].seconds < rows[1].seconds < 600
    assert all(row.images_per_second > 0 for row in rows)


def test_half_a_row_is_written_anew(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(place / "stopped", folder)
    content = (folder / "metrics.jsonl").read_text()
    assert content
    assert not content.endswith("\n")
    child = processes.run(*train(place / "data.npz", folder), output=tmp_path / "said")
    assert child.code == 0, child.said
    assert result(folder) == result(place / "twin")


def test_another_number_of_threads(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(place / "stopped", folder)
    *command, _, _, network, small = train(place / "data.npz", folder)  # the last words are about threads and network
    other = processes.run(*command, network, small, "--threads", 2, output=tmp_path / "said")
    assert other.code == 2
    assert "began with --threads 1, and would not be reproducible with 2: leave out --threads" in other.said
    assert damage(folder) == []
    same = processes.run(*command, network, small, output=tmp_path / "said", threads=2)
    assert same.code == 0, same.said
    assert "(1 thread)" in same.said_in_one_line
    assert result(folder) == result(place / "twin")
