"""What a command says to do next can be done as it stands."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.config import RunConfig
from papi.setup.settings import complete

Out = pytest.CaptureFixture[str]


def next_words(said: str) -> Sequence[str]:
    """The command in the last line."""
    last = said.splitlines()[-1]
    assert last.startswith("Next: papi ")
    return shlex.split(last.removeprefix("Next: papi "))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--data-dir", "else where"),
        ("--candidates.flip-rate", "0.25", "--candidates.seed", "3", "--candidates.kind", "noisy"),
        ("--candidates.allow-missing-truth",),
    ],
)
def test_what_was_checked_is_trained_on(options: tuple[str, ...], capsys: Out) -> None:
    from papi.cli import app

    assert papi_exit_code("check", "digits", *options) == 0
    words = next_words(capsys.readouterr().out)
    assert words[:3] == ["train", "--data", "digits"]
    command = app.parse_args(words, exit_on_error=False, print_error=False)[1]
    config = command.arguments.get("config", RunConfig(data="digits"))
    given = app.parse_args(["train", "--data", "digits", *options], exit_on_error=False, print_error=False)[1]
    assert config == given.arguments["config"]


def test_data_of_ones_own_go_on_to_training(toy_npz: Path, tmp_path: Path, capsys: Out) -> None:
    assert papi_exit_code("check", toy_npz) == 0
    words = next_words(capsys.readouterr().out)
    assert papi_exit_code(*words, "--epochs", 1, "--threads", 1, "--method", "proden", "--out", tmp_path / "run") == 0


def test_the_settings_that_training_uses(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert papi_exit_code("methods", "papi") == 0
    said = capsys.readouterr().out
    rows = {cells[1].strip(): cells[2:4] for cells in (line.split("│") for line in said.splitlines()) if len(cells) > 4}
    used = complete(RunConfig(method="papi"), features=False, sets_given=False).given_options
    assert [cell.strip() for cell in rows["passes"]] == ["paper", used["passes"]]
    assert [cell.strip() for cell in rows["confidence_momentum"]] == ["0.95,0.8", used["confidence_momentum"]]
    assert [cell.strip() for cell in rows["mixup"]] == ["on", ""]
    assert "40 epochs" in said
    assert papi_exit_code("methods", "proden") == 0
    assert "these defaults" in capsys.readouterr().out
