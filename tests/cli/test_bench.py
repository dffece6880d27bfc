"""`papi bench` without training: lists, commands, tables, figures, mistakes."""

import csv
import io
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import as_module, tiny_suite, train_cell

import papi.cli
from command import papi_exit_code
from papi.cli.bench_options import Training
from papi.cli.bench_suites import train_missing
from papi.experiments import SUITES, cells
from papi.experiments.results import read_runs
from papi.experiments.suites import Task


@pytest.fixture
def suite(toy_npz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small suite by the name under which `papi bench` finds it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tiny_module", raising=False)
    return as_module(tmp_path, toy_npz)


@pytest.fixture
def runs(toy_npz: Path, tmp_path: Path) -> Path:
    """A folder with three of the eight runs of the suite, under names of their own."""
    for number, config in enumerate(list(tiny_suite(toy_npz).cells())[:3]):
        train_cell(config, tmp_path / "runs" / f"mine {number}")
    return tmp_path / "runs"


def test_dry_run_prints_a_command_for_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("bench", "uniform", "--scale", "cpu", "--dry-run", "--out", tmp_path) == 0
    commands = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert len(commands) == len({cells.key(config) for config in SUITES["cpu"]["uniform"].cells()})
    assert all(command[:2] == ["papi", "train"] for command in commands)
    assert len({command[-1] for command in commands}) == len(commands)
    assert not list(tmp_path.iterdir())


def test_commands_give_the_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data-dir", "my data", "--device", "cpu", "--out", tmp_path]
    assert papi_exit_code("bench", "ablation", "--dry-run", *options) == 0
    found = set()
    for line in capsys.readouterr().out.splitlines():
        _, bound, _ = papi.cli.app.parse_args(shlex.split(line)[1:])
        config = bound.arguments["config"]
        assert (config.data_dir, config.device) == (Path("my data"), "cpu")
        found.add(cells.key(config))
    assert found == {cells.key(config) for config in SUITES["cpu"]["ablation"].cells()}


def test_dry_run_tells_what_is_done(suite: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs are found by their settings, in folders of any name."""
    assert papi_exit_code("bench", suite, "--dry-run", "--out", runs) == 0
    commands = capsys.readouterr().out.splitlines()
    assert len(commands) == 8
    assert sum(command.startswith("# done: papi train ") for command in commands) == 3


def test_a_reader_that_has_seen_enough() -> None:
    command = f'"{sys.executable}" -m papi bench all --dry-run | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert not done.stderr


@pytest.mark.parametrize("arguments", [["--list"], [], ["uniform", "--list"]])
def test_list_shows_every_suite(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("bench", *arguments, "--scale", "cpu", "--out", tmp_path) == 0
    said = capsys.readouterr().out
    assert all(name[:10] in said for name in SUITES["cpu"])


def test_tables_of_what_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tables-only", "--out", tmp_path, "--format", "markdown"]
    assert papi_exit_code("bench", "ablation", "--scale", "paper", *options) == 0
    assert "| Variant 1 | – (paper 96.42 ± 0.11)" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["terminal", "markdown", "latex", "csv"])
def test_every_format_shows_the_runs(
    format: str, suite: str, runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    papi_exit_code("bench", suite, "--tables-only", "--out", runs, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(int(row["seeds"]) for row in rows) == 3
    assert papi_exit_code("bench", suite, "--tables-only", "--out", runs, "--format", format) == 0
    said = capsys.readouterr().out
    for row in rows:
        assert row["method"] in said
        assert row["mean"] in said


def test_figures_are_saved_where_asked(
    suite: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my figures"
    options = ["--tables-only", "--out", runs, "--figures", folder, "--format", "csv"]
    assert papi_exit_code("bench", suite, *options) == 0
    assert sorted(file.name for file in folder.iterdir()) == ["tiny-curves.png", "tiny-curves.svg"]
    assert ElementTree.parse(folder / "tiny-curves.svg").getroot().tag.endswith("svg")
    out, said = capsys.readouterr()
    assert "tiny-curves.svg" in said
    assert len(list(csv.reader(io.StringIO(out)))) == 5  # the table alone goes to standard output


def test_figures_without_a_run_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "figures"
    assert papi_exit_code("bench", "figures", "--tables-only", "--out", tmp_path, "--figures", folder) == 0
    assert not folder.exists()
    assert re.search(r"4 of 4 figures", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["uniformm"], "did you mean 'uniform'?"),
        (["budget", "--scale", "paper"], "unknown suite of scale paper 'budget'"),
        (["no.such:SUITE"], "cannot be imported"),
        (["papi.config:RunConfig"], "is not a papi.experiments.suites.Suite"),
        (["uniform", "--jobs", 0], "--jobs must be 1 or more"),
        (["uniform", "--threads", -1], "--threads must be 1 or more"),
        (["uniform", "--jobs", 2.5], "2.5"),
        (["ablation", "--backend", "dask"], "needs the address of a scheduler"),
    ],
)
def test_mistakes_get_a_sentence(
    arguments: list[object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert papi_exit_code("bench", *arguments, "--out", tmp_path / "runs") != 0
    assert said in " ".join(re.sub("[│╭╮╰╯─]", "", capsys.readouterr().err).split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option", ["--write", "--rows", "--adopt", "--commit"])
def test_results_pages_are_not_the_business_of_the_command(option: str, tmp_path: Path) -> None:
    """How our own page is made is in recipes/, beside the package."""
    assert papi_exit_code("bench", "uniform", "--tables-only", "--out", tmp_path, option, tmp_path) != 0


def test_data_that_are_not_here_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With where they are published; nothing is started."""
    assert papi_exit_code("bench", "real-world", "--data-dir", tmp_path, "--out", tmp_path / "runs") == 2
    said = capsys.readouterr().err
    assert all(name in said for name in ("lost", "fg-net", "yahoo-news", "palm.seu.edu.cn"))
    assert not (tmp_path / "runs").exists()


def test_tables_name_data_that_are_not_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the tables, not in them: standard output is theirs."""
    options = ("--tables-only", "--data-dir", tmp_path, "--out", tmp_path / "runs", "--format", "csv")
    assert papi_exit_code("bench", "real-world", *options) == 0
    said = capsys.readouterr()
    for name in ("fg-net", "mirflickr", "soccer-player", "italian", "yahoo-news"):
        assert any(name in line and "palm.seu.edu.cn" in line for line in said.err.splitlines())
    assert "palm.seu.edu.cn" not in said.out


def test_the_rest_goes_on_without_them(
    toy_npz: Path, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a suite whose other cells are done."""
    suite = tiny_suite(toy_npz)
    (table,) = suite.tables
    done = replace(table, entries=table.entries[:1], tasks=table.tasks[:1], seeds=(0,))
    absent = replace(done, tasks=(Task("fg-net", "FG-NET", "its own sets"),))
    training = Training(out=runs, data_dir=tmp_path)
    assert train_missing([replace(suite, tables=(done, absent), figures=())], training, read_runs(runs))
    assert "fg-net" in capsys.readouterr().out
