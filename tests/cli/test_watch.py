"""`papi watch`: drawing once into a pipe, and again and again in a terminal."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.cli.watch import HEIGHT, curve
from papi.files.lock import Lock
from run_folders import write_run


def watch(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "papi", "watch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_pipe_gets_the_state_of_now(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=5)
    folder.summary_file.unlink()
    folder.write_rows(folder.read_rows()[:2])
    lock = Lock(folder.path)
    done = watch(folder.path)
    assert done.returncode == 0, done.stderr
    assert "2 of 5 epochs" in done.stdout
    assert "s left" in done.stdout
    assert "is unfinished" not in done.stdout
    assert "resolved labels  36.0%" in done.stdout
    lock.release()
    done = watch(folder.path)
    assert done.returncode == 0, done.stderr
    assert "2 of 5 epochs" in done.stdout
    assert "s left" not in done.stdout
    assert "is unfinished and not training. `papi train --data" in done.stdout
    assert f"--method papi --out {folder.path}` continues it" in done.stdout


def test_a_finished_run_in_a_pipe(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert watch(folder.path).stdout.endswith(f"Next: papi report {folder.path} --open\n")


def test_no_run_is_one_sentence(tmp_path: Path) -> None:
    done = watch(tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert "no run" in done.stderr


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "1e30"])
def test_seconds_that_are_none(tmp_path: Path, every: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("watch", write_run(tmp_path / "run").path, "--every", every) == 2
    assert "--every must be more than 0 and at most 86400 seconds" in capsys.readouterr().err


def test_a_terminal_is_redrawn_until_the_run_ends(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=4)
    rows, summary = folder.read_rows(), folder.read_summary() or {}
    folder.summary_file.unlink()
    folder.write_rows([])
    lock = Lock(folder.path)
    process, leader = watch_in_a_terminal(folder.path)
    seen = read_until(leader, "No epoch has finished yet")
    folder.write_rows(rows[:3])
    seen += read_until(leader, "3 of 4 epochs")
    folder.write_rows(rows)
    folder.write_summary(summary)
    seen += read_until(leader, "Finished: 4 epochs")
    assert process.wait(timeout=30) == 0
    assert "mean confidence" in seen
    os.close(leader)
    lock.release()


def test_a_terminal_until_the_trainer_dies(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=4)
    folder.summary_file.unlink()
    folder.write_rows(folder.read_rows()[:3])
    lock = Lock(folder.path)
    process, leader = watch_in_a_terminal(folder.path)
    read_until(leader, "s left")
    lock.release()
    read_until(leader, "is unfinished and not training. `papi train")
    assert process.wait(timeout=30) == 0
    os.close(leader)


def watch_in_a_terminal(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and what its terminal can be read from."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "papi", "watch", str(folder), "--every", "0.05"]
    process = subprocess.Popen(command, stdout=follower, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
    os.close(follower)
    return process, leader


def read_until(terminal: int, text: str, seconds: float = 60) -> str:
    seen = ""
    deadline = time.monotonic() + seconds
    while text not in seen:
        assert time.monotonic() < deadline, f"{text!r} was not shown"
        seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.1, 0.9, 0.4], [float("nan"), 1.0], [1e30, -1e30]])
def test_curves_keep_their_size(values: list[float]) -> None:
    lines = curve(list(enumerate(values)), len(values), 30, HEIGHT, percent=False)
    assert len(lines) == HEIGHT
    assert any(ord(sign) > 0x2800 for line in lines for sign in line)


def test_a_rising_curve_rises() -> None:
    lines = curve([(epoch, epoch / 9) for epoch in range(10)], 10, 30, HEIGHT, percent=True)
    assert lines[0].startswith(" 100.0%")
    assert lines[0].rstrip("\u2800")[-1] > "\u2800"
    first = [next(n for n, sign in enumerate(line[8:]) if ord(sign) > 0x2800) for line in lines]
    assert first == sorted(first, reverse=True)


def test_no_finite_value() -> None:
    assert curve([(0, float("nan"))], 1, 30, HEIGHT, percent=False) == ["  no finite values"]
