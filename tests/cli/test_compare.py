"""`papi compare` on run folders made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from command import papi_exit_code
from papi.runs.folder import RunFolder
from run_folders import write_run


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def with_criteria(folder: RunFolder, last: float, *, seed: int | None = None) -> Path:
    """The rows of a run with criteria that rise to `last`."""
    rows = folder.read_rows()
    shares = [(n + 1) / len(rows) for n in range(len(rows))]
    folder.write_rows(
        [
            replace(row, covering_rate=last * s, approximated_accuracy=last * s, candidate_likelihood=s - 2)
            for row, s in zip(rows, shares, strict=True)
        ]
    )
    if seed is not None:
        record = folder.begun()
        folder.write_record(replace(record, identity=record.identity | {"seed": seed}))
    return folder.path


def test_the_order_ties_and_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    middle = with_criteria(write_run(tmp_path / "middle"), 0.8)
    best = with_criteria(write_run(tmp_path / "best", method="proden"), 0.9)
    equal = with_criteria(write_run(tmp_path / "equal"), 0.8)
    silent = write_run(tmp_path / "silent").path
    RunFolder(equal).summary_file.unlink()
    assert papi_exit_code("compare", middle, best, equal, silent, best) == 0
    told = capsys.readouterr().out
    lines = [line.split("│") for line in told.splitlines() if "│" in line]
    assert [(cells[1].strip(), cells[2].strip()) for cells in lines] == [
        ("1", "best"), ("2", "middle"), ("2", "equal"), ("–", "silent"),
    ]  # fmt: skip
    assert "90.00% (1)" in told
    assert "80.00%" in told.splitlines()[3]  # the test accuracy beside
    assert "silent has no validation set: train it with --data.holdout 0.1" in told
    assert "middle and equal tie by covering rate." in told
    assert "equal has not finished: 3 of 3 epochs are done." in told
    assert "small differences mean little" not in told
    assert told.endswith(f"Next: papi report {best} --open\n")


def test_runs_judged_by_other_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [with_criteria(write_run(tmp_path / name), 0.8, seed=n) for n, name in enumerate("ab")]
    assert papi_exit_code("compare", *runs, "--by", "candidate-likelihood") == 0
    told = capsys.readouterr().out
    assert "small differences mean little" in told
    assert "a and b tie by candidate likelihood." in told


def test_without_true_labels_there_is_no_accuracy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = with_criteria(write_run(tmp_path / "run", truth=False), 0.7)
    assert papi_exit_code("compare", run) == 0
    assert "test accuracy" not in capsys.readouterr().out
    assert papi_exit_code("compare", run, "--regret") == 0
    assert "no regret to show" in capsys.readouterr().out


def test_what_choosing_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = with_criteria(write_run(tmp_path / "run"), 0.7)
    assert papi_exit_code("compare", run, "--regret") == 0
    told = capsys.readouterr().out
    for criterion in ("covering rate", "approximated accuracy", "candidate likelihood", "last epoch"):
        assert criterion in told
    assert "0.00 points" in told
    assert "1.00" in told
    assert "Next: papi train" in told.splitlines()[-1]


def test_nothing_held_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("compare", write_run(tmp_path / "run").path) == 0
    assert "--data.holdout 0.1" in capsys.readouterr().out.splitlines()[-1]


def test_no_run_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("compare", tmp_path / "missing") == 2
    assert "does not contain a run" in capsys.readouterr().err
