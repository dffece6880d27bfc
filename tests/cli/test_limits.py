"""Values on the command line that no machine can use: one sentence, exit code 2, and nothing is written."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from command import papi_exit_code

Out = pytest.CaptureFixture[str]
MEGABYTE = 2**20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--checkpoint.every", "²s"),
            "--checkpoint.every must be a number of steps such as 200 or of seconds such as 60s; got ²s.",
        ),
        (
            ("--checkpoint.every", "٣"),
            "--checkpoint.every must be a number of steps such as 200 or of seconds such as 60s; got ٣.",
        ),
        (("--checkpoint.every", "0s"), "--checkpoint.every must be"),
        (("--checkpoint.every", "9" * 5000), "--checkpoint.every must be"),
        (("--candidates.votes", "at-least-" + "9" * 5000), "--candidates.votes must be union, vaguest, dawid-skene"),
        (("--candidates.votes", "at-least-1٣"), "--candidates.votes must be union, vaguest, dawid-skene"),
        (("--threads", str(2**40)), "--threads must be at most 1024; got 1099511627776."),
        (("--threads", "100000"), "--threads must be at most 1024; got 100000."),
        (("--method", ":"), "--method : does not name a class: write it like package.module:Class."),
        (("--method", "..:x"), "--method ..:x does not name a class: write it like package.module:Class."),
        (("--method", "a:"), "--method a: does not name a class: write it like package.module:Class."),
        (("--method", ":b"), "--method :b does not name a class"),
        (("--method", "../a:b"), "--method ../a:b does not name a class"),
        (("--network", ":"), "the network : cannot be imported"),
        (("--network", "..:x"), "the network ..:x cannot be imported"),
    ],
)
def test_impossible_values(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.chdir(tmp_path)
    assert papi_exit_code("train", "--data", "digits", *options, "--out", "run") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"papi: {message}")
    assert said.count("\n") == 1
    assert not os.listdir()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "--out", ""), "--out has no value"),
        (("train", "--out="), "--out has no value"),
        (("train", "--data", "", "--epochs", "1"), "--data has no value"),
        (("labels", "run", "--out", ""), "--out has no value"),
        (("predict", "", "a.png"), "an argument is empty"),
        (("doctor", ""), "an argument is empty"),
        (("",), "an argument is empty"),
    ],
)
def test_an_empty_word(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    """An empty path would mean the current folder: a variable of the shell that is not set must not train there."""
    monkeypatch.chdir(tmp_path)
    assert papi_exit_code(*words) == 2
    assert capsys.readouterr().err.startswith(f"papi: {message}: ")
    assert not os.listdir()


@pytest.mark.parametrize("option", ["--jobs", "--threads"])
def test_bench_has_limits_too(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.chdir(tmp_path)
    assert papi_exit_code("bench", "uniform", "--tables-only", option, 100_000) == 2
    assert f"{option} must be at most 1024; got 100000." in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
@pytest.mark.parametrize("megabytes", [150, 450, 700])
def test_too_little_address_space(megabytes: int, tmp_path: Path) -> None:
    """Whatever cannot be loaded or allocated first, it is said in one sentence."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, megabytes * MEGABYTE))

    done = subprocess.run(
        [sys.executable, "-m", "papi", "train", "--data", "digits", "--out", tmp_path / "run", "--threads", "1"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == ("papi: not enough memory: use a smaller --batch-size, or fewer or smaller samples.\n")
    assert not (tmp_path / "run").exists()
