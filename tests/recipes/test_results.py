"""The command that writes the results page: kept rows count as done, the rest is trained or adopted."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import as_module, tiny_suite, train_cell

from papi.experiments import SUITES, cells
from recipes import results
from recipes.rows import collect, read_rows

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the process works in and imports modules from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("tiny_module", "mixed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def run(*suites: str, adopt: tuple[Path, ...] = (), commit: str | None = None, **what: bool) -> int:
    """Call the command and return its exit code. It keeps everything in the folder that the process works in."""
    training = results.Training(out=Path("runs"), jobs=2, threads=1, device="cpu")
    places = {"rows": Path("rows"), "write": Path("docs")}
    try:
        results.main(*suites, **places, adopt=adopt, commit=commit, training=training, **what)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_adopted_runs_and_rows_count_as_done_and_the_rest_is_trained(
    toy_npz: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = as_module(here, toy_npz)
    configs = {cells.key(config): config for config in tiny_suite(toy_npz).cells()}
    kept, *adopted = list(configs)[:-1]
    train_cell(configs[kept], here / "kept" / "run")
    for number, key in enumerate(adopted):
        train_cell(configs[key], here / "adopted" / str(number))

    assert run(name, adopt=(Path("kept"),), commit="abc1234", tables_only=True) == 0
    assert {row.key for row in read_rows(here / "rows" / "tiny.jsonl")} == {kept}
    assert not (here / "runs").exists()
    assert f"1 of {len(configs)} runs are finished" in (here / "docs" / "results" / "tiny.md").read_text()
    capsys.readouterr()

    assert run(name, adopt=(Path("adopted"),), dry_run=True) == 0
    commands = capsys.readouterr().out.splitlines()
    assert len(commands) == len(configs)
    assert sum(line.startswith("# done: papi train ") for line in commands) == len(configs) - 1

    assert run(name, adopt=(Path("adopted"),)) == 0
    assert len(list((here / "runs").glob("*/summary.json"))) == 1
    assert {row.key for row in read_rows(here / "rows" / "tiny.jsonl")} == configs.keys()
    page = (here / "docs" / "results" / "tiny.md").read_text()
    assert f"{len(configs)} of {len(configs)} runs are finished" in page
    assert "(tiny-curves.svg)" in page
    assert (here / "docs" / "results" / "tiny-curves.svg").exists()
    assert not (here / "docs" / "results.md").exists()  # the overview is of our own suites

    shutil.rmtree(here / "runs")
    assert run(name) == 0  # rows alone are enough: nothing is trained, and nothing changes
    assert not (here / "runs").exists()
    assert (here / "docs" / "results" / "tiny.md").read_text() == page


MIXED = """
from papi.experiments.suites import Entry, Suite, Table, Task

tasks = tuple(Task(data, "toy", data, batch_size=8) for data in ({!r}, "missing.npz"))
SUITE = Suite("mixed", "Mixed", (Table("one epoch", (Entry("PRODEN", "proden"),), tasks, (0,), epochs=1),))
"""


def test_a_cell_that_fails_does_not_keep_the_others_from_the_page(
    toy_npz: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mixed.py").write_text(MIXED.format(str(toy_npz)))
    assert run("mixed:SUITE") == 1
    assert "missing.npz" in capsys.readouterr().out
    assert "1 of 2 runs are finished" in (here / "docs" / "results" / "mixed.md").read_text()
    assert len(read_rows(here / "rows" / "mixed.jsonl")) == 1


def test_mistakes_get_a_sentence(tmp_path: Path) -> None:
    """From a terminal, in any folder."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "recipes.results", "uniform", "--adopt", "nowhere"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["recipes.results: --adopt nowhere is not a folder."]
    assert not list(tmp_path.iterdir())


def test_commands_of_cells_with_rows_are_comments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ROOT / "docs" / "results"
    results.main("many-classes", "budget", dry_run=True, training=results.Training(out=tmp_path))
    commands = capsys.readouterr().out.splitlines()
    suites = [SUITES["cpu"][name] for name in ("many-classes", "budget")]
    wanted = {cells.key(config) for suite in suites for config in suite.cells()}
    assert len(commands) == len(wanted)
    done = [shlex.split(line.removeprefix("# done: ")) for line in commands if line.startswith("# done: ")]
    assert len(done) == len(wanted & collect(rows, {}).keys())
    assert 0 < len(done) < len(commands)
    assert all(command[:2] == ["papi", "train"] for command in done)
    assert not list(tmp_path.iterdir())


def test_the_list_counts_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {}
    for rows in (ROOT / "docs" / "results", tmp_path / "none"):
        results.main(list_suites=True, rows=rows, training=results.Training(out=tmp_path))
        lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
        counts[rows] = {line[1].strip(): int(line[3]) for line in lines if line[1].strip()}
    with_rows, without = counts.values()
    assert set(without.values()) == {0}
    assert with_rows["uniform"] > 100
    assert with_rows.keys() == without.keys()


def test_each_scale_has_rows_and_a_page_of_its_own(tmp_path: Path) -> None:
    suite = SUITES["cpu"]["noise"]
    kept = collect(ROOT / "docs" / "results", {})
    for scale in ("cpu", "paper"):
        results.publish([suite], scale, kept, tmp_path / scale, tmp_path / "docs")
    assert [file.name for file in (tmp_path / "cpu").iterdir()] == ["noise.jsonl"]
    assert [file.name for file in (tmp_path / "paper").iterdir()] == ["noise-paper.jsonl"]
    pages = {file.name for file in (tmp_path / "docs" / "results").glob("*.md")}
    assert pages == {"noise.md", "noise-paper.md", "settings.md"}


def test_untrue_claims_are_told_and_fail_the_command(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = "recipes/pages/noise.md says that two is less than one, but the rows contradict it."
    monkeypatch.setattr(results, "publish", lambda *_: [claim])
    assert run("noise", tables_only=True) == 1
    assert capsys.readouterr().err == f"{claim}\n"
