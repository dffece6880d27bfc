"""`papi report` as a command."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from command import NEEDS_PROC, papi_exit_code, peak_megabytes
from run_folders import write_run


def report(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "papi", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_one_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    done = report(folder.path)
    assert done.returncode == 0, done.stderr
    assert str(folder.path / "report.html") in done.stdout
    assert "Images to review" in (folder.path / "report.html").read_text(encoding="utf-8")
    assert done.stdout.endswith(f"Next: open {folder.path / 'report.html'} in a browser\n")


@pytest.mark.parametrize(("opens", "says"), [(True, "Next: decide the labels of doubtful"), (False, "Next: open")])
def test_the_browser(
    opens: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run")
    monkeypatch.setattr("webbrowser.open", lambda _: opens)
    assert papi_exit_code("report", folder.path, "--open") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(says)


def test_data_that_are_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--data-dir` helps with data known by name alone."""
    folder = write_run(tmp_path / "run")
    (tmp_path / "data-known.npz").unlink()
    assert papi_exit_code("report", folder.path) == 0
    said = capsys.readouterr().out
    assert "in the folder where the run was trained, or restore the data at their old path." in said
    assert "--data-dir" not in said
    record = folder.begun()
    folder.write_record(replace(record, config=record.config | {"data": "svhn"}))
    assert papi_exit_code("report", folder.path, "--data-dir", tmp_path) == 0
    assert "or set the folder of the dataset with --data-dir." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["arrays.npz", "candidates.npz"])
def test_what_can_be_mended(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run")
    (folder.path / name).write_bytes(b"PK")
    assert papi_exit_code("report", folder.path) == 0
    assert f"`papi doctor {folder.path}`" in capsys.readouterr().out
    (folder.path / name).unlink()
    assert papi_exit_code("report", folder.path) == 0
    assert f"`papi doctor {folder.path}`" in capsys.readouterr().out


def test_several_runs_and_what_is_missing(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", method="proden")
    b.summary_file.unlink()
    done = report(a.path, b.path, a.path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 runs compared" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Note on b: This run is unfinished" in done.stdout


@pytest.mark.parametrize(("name", "says"), [("missing", "does not contain a run"), ("empty", "does not contain a run")])
def test_no_run_is_one_sentence(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    done = report(tmp_path / name)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (tmp_path / "no").write_text("a file, not a folder")
    done = report(folder.path, "--out", tmp_path / "no" / "such" / "page.html")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@NEEDS_PROC
def test_sixty_thousand_images_in_bounds(tmp_path: Path) -> None:
    """Noise is the worst an image can be for a page that must stay small."""
    names = tuple(f"class {k}" for k in range(10))
    folder = write_run(tmp_path / "run", names=names, images=60_000, tests=10_000, side=28)
    before = os.times()
    assert peak_megabytes("report", folder.path) < 1_000
    after = os.times()
    work = after.children_user + after.children_system - before.children_user - before.children_system
    assert work < 60  # seconds of work: seconds by the clock depend on what else is running
    assert (folder.path / "report.html").stat().st_size < 8_000_000
