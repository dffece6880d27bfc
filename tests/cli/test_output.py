"""Standard output that is closed, full or no longer read: work goes on, and the exit code tells."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.cli.output import Output, lasting_output

TRAIN = ("train", "--batch-size", "16", "--threads", "1", "--device", "cpu", "--network", "small", "--epochs", "1")
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def in_a_shell(redirection: str, *arguments: object, buffered: bool = True) -> subprocess.CompletedProcess[str]:
    """`papi ARGUMENTS` with its output redirected by a shell."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$0" -m papi "$@" {redirection}', sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-"])
def test_training_without_standard_output(redirection: str, toy_npz: Path, tmp_path: Path) -> None:
    done = in_a_shell(redirection, *TRAIN, "--data", toy_npz, "--out", tmp_path / "run")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert papi_exit_code("doctor", tmp_path / "run") == 0, "no message went into one of its files"


@FULL
@pytest.mark.parametrize("buffered", [True, False])
def test_training_goes_on_when_standard_output_is_full(buffered: bool, toy_npz: Path, tmp_path: Path) -> None:
    done = in_a_shell(">/dev/full", *TRAIN, "--data", toy_npz, "--out", tmp_path / "run", buffered=buffered)
    assert done.returncode == 1
    assert done.stderr == "papi: all files were written, but standard output failed (No space left on device).\n"
    assert papi_exit_code("doctor", tmp_path / "run") == 0


def test_training_goes_on_when_nobody_reads(toy_npz: Path, tmp_path: Path) -> None:
    done = in_a_shell("| head -n 1", *TRAIN, "--data", toy_npz, "--out", tmp_path / "run", buffered=False)
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1
    assert done.stderr == "papi: all files were written, but standard output failed (Broken pipe).\n"
    assert papi_exit_code("doctor", tmp_path / "run") == 0


@FULL
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("command", [("--help",), ("--version",)])
def test_other_commands_end_when_standard_output_is_full(command: tuple[str, ...], buffered: bool) -> None:
    done = in_a_shell(">/dev/full", *command, buffered=buffered)
    assert done.returncode == 2
    assert done.stderr == "papi: standard output cannot be read or written (No space left on device).\n"


@pytest.mark.parametrize("command", [("--help",), ("--version",)])
def test_other_commands_say_nothing_when_nobody_reads(command: tuple[str, ...]) -> None:
    done = in_a_shell("| true", *command, buffered=False)
    assert done.stderr == ""


class Broken(io.StringIO):
    """A stream that takes a few texts."""

    def __init__(self, texts: int) -> None:
        super().__init__()
        self.texts = texts

    def write(self, text: str) -> int:
        if not self.texts:
            raise OSError(28, "No space left on device")
        self.texts -= 1
        return super().write(text)


def test_output_passes_on_what_it_gets() -> None:
    stream = Broken(9)
    with Output(stream).installed() as output:
        print("one", end="")
        print("two", flush=True, end="")
        assert not sys.stdout.isatty()
    assert stream.getvalue() == "onetwo"
    assert output.failure is None


def test_a_failure_is_raised_and_remembered() -> None:
    stdout = sys.stdout
    output = Output(Broken(0))
    with pytest.raises(OSError, match="No space left"), output.installed():
        print("lost")
    assert output.failure is not None
    assert output.failure.errno == 28
    assert sys.stdout is stdout


def test_lasting_output_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stream = Broken(2)
    monkeypatch.setattr(sys, "stdout", stream)
    done = []

    def work() -> None:
        with lasting_output():
            print("kept")
            print("lost")
            done.append("work")

    with pytest.raises(SystemExit) as end:
        work()
    assert end.value.code == 1
    assert done == ["work"]
    assert stream.getvalue() == "kept\n"
    assert sys.stdout is stream
    assert "standard output failed (No space left on device)" in capsys.readouterr().err


def test_lasting_output_hides_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(0))

    def fail() -> None:
        with lasting_output():
            print("lost")
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        fail()
