"""The command in real processes: output, exit codes, signals, kills."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from papi.cli.train import default_folder
from papi.config import CandidatesConfig, RunConfig

OPTIONS = ["--batch-size", "16", "--threads", "1", "--device", "cpu", "--network", "small"]


def papi(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "papi", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "papi", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(file: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} did not appear"
        time.sleep(0.02)


def inode(file: Path) -> int | None:
    """Which file it is; None in the moment between two renames."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def test_train_says_what_came_out_and_what_to_do_next(toy_npz: Path, tmp_path: Path) -> None:
    done = papi("train", "--data", toy_npz, "--out", tmp_path / "run", "--epochs", 2, "--tensorboard", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    assert "papi (passes=one: 1 forward and 1 backward pass per step)" in done.stdout
    assert "4 classes" in " ".join(done.stdout.split())
    assert len(re.findall(r"^ +[12] +\d+\.\d{3}", done.stdout, re.MULTILINE)) == 2
    assert "Test accuracy" in done.stdout
    assert "were resolved to the true label" in " ".join(done.stdout.split())
    assert "papi evaluate" in done.stdout
    evaluated = papi("evaluate", tmp_path / "run")
    assert evaluated.returncode == 0, evaluated.stderr
    accuracy = re.search(r"Test accuracy ([\d.]+%)", done.stdout)
    assert accuracy is not None
    assert accuracy[1] in evaluated.stdout
    assert "bar 3" in evaluated.stdout


def test_an_epoch_picked_by_candidate_sets(toy_npz: Path, tmp_path: Path) -> None:
    select = ("--select", "covering-rate", "--data.holdout", 0.25)
    done = papi("train", "--data", toy_npz, "--out", tmp_path / "run", "--epochs", 2, *select, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "confidence  covering rate  seconds" in done.stdout
    assert re.search(r"\(epoch [12], selected by its covering rate of [\d.]+%; last epoch: [\d.]+%; best", done.stdout)
    labelled = papi("labels", tmp_path / "run")
    assert "96 resolved labels" in labelled.stdout  # of those held out, too


def test_the_same_command_again_does_nothing(toy_npz: Path, tmp_path: Path) -> None:
    arguments = ("train", "--data", toy_npz, "--out", tmp_path / "run", "--epochs", 1, *OPTIONS)
    assert papi(*arguments).returncode == 0
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()}
    again = papi(*arguments)
    assert again.returncode == 0
    assert "already complete" in again.stdout
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--data", "fashon-mini"], "did you mean 'fashion-mini'"),
        (["--data", "missing.npz"], "does not exist"),
        (["--method", "pappi"], "did you mean 'papi'"),
        (["--network", "smal"], "did you mean 'small'"),
        (["--preset", "quik"], "did you mean 'quick'"),
        (["--option", "temprature=1"], "did you mean 'temperature'"),
        (["--option", "temperature=hot"], "is not valid"),
        (["--candidates.flip-rate", "1"], "--candidates.flip-rate must be"),
        (["--epochs", "0"], "--epochs must be"),
        (["--batch-size", "1"], "--batch-size must be"),
        (["--optim.lr", "-0.1"], "--optim.lr must be"),
        (["--optim.weight-decay", "inf"], "--optim.weight-decay must be"),
        (["--method", "pico", "--option", "queue=100000000000000"], "not enough memory"),
        (["--limit", "20000"], "--limit 20000 exceeds the 10000"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = papi("train", "--out", tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("papi: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_unknown_words_suggest_the_nearest() -> None:
    for arguments, says in (["trian"], "train"), (["train", "--epoch", "3"], "--epochs"):
        done = papi(*arguments)
        assert done.returncode == 2
        assert "Did you mean" in done.stderr
        assert says in done.stderr


@pytest.mark.parametrize("option", ["--epochs", "--batch-size", "--seed", "--candidates.seed"])
def test_numbers_are_not_rounded(option: str) -> None:
    done = papi("train", option, "2.5")
    assert done.returncode == 2
    assert "expected a whole number; got 2.5" in done.stderr


def test_a_terminal_that_knows_few_characters(toy_npz: Path, tmp_path: Path) -> None:
    few = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = papi(
        "train", "--data", toy_npz, "--out", tmp_path / "run", "--epochs", 1, "--method", "cc", *OPTIONS, env=few
    )
    assert done.returncode == 0, done.stderr
    assert "?" in done.stdout  # of prototypes there is nothing to say, which is a dash elsewhere


def test_a_damaged_config_is_one_sentence(toy_npz: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text('{"identity": {"seed"')
    done = papi("train", "--data", toy_npz, "--out", folder, "--epochs", 1, *OPTIONS)
    assert done.returncode == 2
    assert "config.json is damaged" in done.stderr


def test_a_file_in_the_way(toy_npz: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = papi("train", "--data", toy_npz, "--out", tmp_path / "file" / "run", "--epochs", 1, *OPTIONS)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    done = papi("train", "--data", toy_npz, "--out", tmp_path / ("x" * 300), "--epochs", 1, *OPTIONS)
    assert done.returncode == 2
    assert "xxx cannot be read or written (File name too long)." in done.stderr


def test_a_signal_saves_and_the_run_goes_on(toy_npz: Path, tmp_path: Path) -> None:
    """Stopped by a signal, killed, continued: the model is that of a run left alone. More is in tests/faults."""
    common = ["train", "--data", toy_npz, "--epochs", 30, "--checkpoint.every", "1", *OPTIONS]
    folder = tmp_path / "parts"
    first = start(*common, "--out", folder)
    wait_for(folder / "checkpoint.pt")
    first.send_signal(signal.SIGTERM)
    output, errors = first.communicate(timeout=60)
    assert first.returncode == 143, errors
    assert "Continue with:" in output
    assert not (folder / "summary.json").exists()

    before = inode(folder / "checkpoint.pt")
    second = start(*common, "--out", folder)
    while inode(folder / "checkpoint.pt") in (before, None):
        time.sleep(0.01)
    second.kill()
    second.communicate(timeout=60)

    third = papi(*common, "--out", folder)
    assert third.returncode == 0, third.stderr
    assert "continuing in epoch" in third.stdout
    assert papi(*common, "--out", tmp_path / "whole").returncode == 0
    assert (folder / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()


def test_lists() -> None:
    assert "papi" in papi("methods").stdout
    assert "mixup_alpha" in papi("methods", "papi").stdout
    assert "fashion-mini" in papi("datasets").stdout


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (RunConfig(), "fashion-mini-papi-q0.5-seed0"),
        (RunConfig(data="there/photos/", method="mine.methods:Best", seed=3), "photos-Best-q0.5-seed3"),
        (RunConfig(candidates=CandidatesConfig(0.1, kind="noisy")), "fashion-mini-papi-noisy0.1-seed0"),
        (RunConfig(candidates=CandidatesConfig(file=Path("a/votes.csv"))), "fashion-mini-papi-votes-seed0"),
    ],
)
def test_the_folder_of_a_run_is_named_after_its_settings(config: RunConfig, name: str) -> None:
    assert default_folder(config) == Path("runs") / name
