"""`papi tune`: a search that is killed ends with the same table; mistakes end in a sentence."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import papi_exit_code

WORDS = ("cc", "--epochs", 1, "--batch-size", 8, "--budget", 3, "--jobs", 1, "--threads", 1, "--device", "cpu")


def summaries(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.glob("trial*/summary.json")}


def start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "papi", "tune", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def table(said: str) -> str:
    return said[said.index("**trials") :]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_killed_search_ends_with_the_same_table(
    number: signal.Signals, toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*WORDS, "--data", toy_npz, "--data.holdout", 0.3, "--format", "markdown")
    killed = start(*words, "--out", tmp_path / "runs")
    deadline = time.monotonic() + 300
    while not summaries(tmp_path / "runs"):
        assert killed.poll() is None, killed.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(number)
    said, _ = killed.communicate(timeout=120)
    assert killed.returncode == (-number if number == signal.SIGKILL else 128 + number), said
    assert ("Run the same command to continue" in said) == (number != signal.SIGKILL)
    before = summaries(tmp_path / "runs")
    assert 0 < len(before) < 3

    # Never interrupted: the same trials in this process.
    assert papi_exit_code("tune", *words, "--out", tmp_path / "whole", "--dry-run") == 0
    for command in capsys.readouterr().out.splitlines():
        program, *rest = shlex.split(command)
        assert (program, rest[0]) == ("papi", "train")
        assert papi_exit_code(*rest) == 0
    capsys.readouterr()
    assert papi_exit_code("tune", *words, "--out", tmp_path / "whole") == 0
    whole = capsys.readouterr().out

    assert papi_exit_code("tune", *words, "--out", tmp_path / "runs") == 0
    continued = capsys.readouterr().out
    after = summaries(tmp_path / "runs")
    assert {file: after[file] for file in before} == before  # what was done is not done again
    assert table(continued) == table(whole)
    assert len(re.findall(r"^\| \*{0,2}\d", table(whole), re.MULTILINE)) == 3
    (command,) = re.findall(r"papi train .*", whole)
    assert "--method cc" in command
    assert "--data.holdout 0.3" in command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cc", "--budget", 0), "--budget must be between 1 and 100000 trials; got 0"),
        (("cc", "--budget", -3), "--budget must be"),
        (("cc", "--jobs", 0), "--jobs must be"),
        (("ccc",), "did you mean 'cc'"),
        (("cc", "--method", "proden"), "tune one at a time"),
        (("cc", "--range", "view=up,down"), "up is not valid"),
        (("cc", "--range", "optim.lr=3..1"), "must go from a number to a larger one; got 3..1"),
        (("cc", "--data.holdout", 0), "needs a validation set"),
        (("cc", "--backend", "dask"), "--address"),
    ],
)
def test_mistakes_end_in_a_sentence(
    words: tuple[object, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert papi_exit_code("tune", *words, "--data", "digits", "--limit", 50, "--out", tmp_path / "runs") == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_machines_of_a_cluster_get_absolute_paths(
    toy_npz: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy_npz.parent)
    words = ("tune", *WORDS, "--data", toy_npz.name, "--backend", "dask", "--dry-run")
    assert papi_exit_code(*words, "--data-dir", "elsewhere", "--out", tmp_path / "runs") == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert command[command.index("--data") + 1] == str(toy_npz)
        assert command[command.index("--data-dir") + 1] == str(toy_npz.parent / "elsewhere")


def test_the_oracle_needs_true_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.csv").write_text("a,b,candidates\n" + "".join(f"{n},{n % 3},x|y\n" for n in range(20)))
    words = ("tune", "cc", "--data", tmp_path / "table.csv", "--by", "accuracy", "--out", tmp_path / "runs")
    assert papi_exit_code(*words) == 2
    assert "has none" in capsys.readouterr().err


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("tune", "--help") == 0
    said = capsys.readouterr().out
    assert "--budget" in said
    assert "--range" in said
