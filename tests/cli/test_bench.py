"""`papi bench` without training: lists, commands, tables, mistakes."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.experiments import SUITES, cells
from papi.experiments.rows import collect


def test_dry_run_prints_a_command_for_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("bench", "uniform", "--scale", "cpu", "--dry-run", "--rows", tmp_path, "--out", tmp_path) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == len({cells.key(config) for config in SUITES["cpu"]["uniform"].cells()})
    assert all(command[:2] == ["papi", "train"] for command in commands)
    assert len({command[-1] for command in commands}) == len(commands)
    assert not list(tmp_path.iterdir())


def test_dry_run_tells_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Path(__file__).parents[2] / "docs" / "results"
    kept = collect(rows, {})
    assert papi_exit_code("bench", "many-classes", "--dry-run", "--rows", rows, "--out", tmp_path) == 0
    commands = capsys.readouterr().out.splitlines()
    done = {cells.key(config) for config in SUITES["cpu"]["many-classes"].cells()} & kept.keys()
    assert sum(command.startswith("# done: papi train ") for command in commands) == len(done) > 0


def test_a_reader_that_has_seen_enough() -> None:
    command = f'"{sys.executable}" -m papi bench all --dry-run | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert not done.stderr


def test_list_shows_every_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("bench", "--list", "--scale", "cpu", "--rows", tmp_path, "--out", tmp_path) == 0
    said = capsys.readouterr().out
    assert all(name[:10] in said for name in SUITES["cpu"])


def test_tables_of_what_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    options = ["--tables-only", "--rows", tmp_path / "rows", "--out", tmp_path, "--format", "markdown"]
    assert papi_exit_code("bench", "ablation", "--scale", "paper", "--write", page, *options) == 0
    assert "| Variant 1 | – (paper 96.42 ± 0.11)" in capsys.readouterr().out
    assert "paper 96.42" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["uniformm"], "did you mean 'uniform'?"),
        (["budget", "--scale", "paper"], "there is no suite of scale paper 'budget'"),
        (["no.such:SUITE"], "cannot be imported"),
        (["papi.config:RunConfig"], "is not a papi.experiments.suites.Suite"),
        (["uniform", "--jobs", 0], "--jobs must be 1 or more"),
        (["uniform", "--adopt", "nowhere"], "--adopt nowhere is not a folder"),
        (["ablation", "--backend", "dask"], "needs the address of a scheduler"),
    ],
)
def test_mistakes_get_a_sentence(
    arguments: list[object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert papi_exit_code("bench", *arguments, "--rows", tmp_path, "--out", tmp_path / "runs") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
