"""`papi watch`: drawing once into a pipe, and again and again in a terminal."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from papi.cli.watch import HEIGHT, curve
from run_folders import write_run


def watch(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "papi", "watch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_pipe_gets_the_state_of_now(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=5)
    folder.summary_file.unlink()
    folder.write_rows(folder.read_rows()[:2])
    done = watch(folder.path)
    assert done.returncode == 0, done.stderr
    assert "2 of 5 epochs" in done.stdout
    assert "resolved labels  36.0%" in done.stdout


def test_no_run_is_one_sentence(tmp_path: Path) -> None:
    done = watch(tmp_path)
    assert done.returncode == 2
    assert "holds no run yet" in done.stderr
    assert watch(write_run(tmp_path / "run").path, "--every", "0").returncode == 2


def test_a_terminal_is_redrawn_until_the_run_ends(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", epochs=4)
    rows, summary = folder.read_rows(), folder.read_summary() or {}
    folder.summary_file.unlink()
    folder.write_rows([])
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "papi", "watch", str(folder.path), "--every", "0.05"]
    process = subprocess.Popen(command, stdout=follower, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
    os.close(follower)
    seen = read_until(leader, "No epoch has ended yet")
    folder.write_rows(rows[:3])
    seen += read_until(leader, "3 of 4 epochs")
    folder.write_rows(rows)
    folder.write_summary(summary)
    seen += read_until(leader, "Finished: 4 epochs")
    assert process.wait(timeout=30) == 0
    assert "mean confidence" in seen
    os.close(leader)


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
    assert curve([(0, float("nan"))], 1, 30, HEIGHT, percent=False) == ["  no finite value"]
