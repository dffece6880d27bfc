"""What is told of a grid while it runs."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from papi.cli.bench_progress import Board
from papi.experiments.grid import Cell, Ended


def cell(folder: Path, name: str, work: int) -> Cell:
    return Cell(name, "toy", folder / name, (), threads=1, epochs=4, work=work)


def begin(each: Cell, epochs: int) -> None:
    each.folder.mkdir(exist_ok=True)
    each.lock.parent.mkdir(exist_ok=True)
    each.lock.touch()
    (each.folder / "metrics.jsonl").write_text("".join(json.dumps({"epoch": n}) + "\n" for n in range(epochs)))


def test_done_running_failed_and_time_left(tmp_path: Path) -> None:
    first, second, third, _ = cells = [cell(tmp_path, name, 100) for name in ("a", "b", "c", "d")]
    begin(second, 1)  # half a grid that was stopped: a quarter of this cell was trained before
    second.lock.unlink()
    board = Board(cells)
    assert board.running() == []
    assert board.seconds_left() is None
    board.began -= 60
    begin(first, 4)
    (first.folder / "summary.json").touch()
    begin(second, 3)
    begin(third, 0)
    board.end(Ended(third, "papi: [no] such data"))
    assert board.finished() == [first]
    assert board.running() == [second]
    # Of 300 units, 100 + 75 are done, 25 of them before this grid: 150 in a minute, and 125 are left.
    assert board.seconds_left() == pytest.approx(50, rel=0.1)
    console = Console(width=100, record=True, markup=False, file=io.StringIO())
    console.print(board)
    said = console.export_text()
    assert "1 of 4 runs done, 1 running, 1 failed" in said
    assert "3 of 4" in said
    assert "failed: c: papi: [no] such data" in said


def test_cells_that_were_stopped_did_not_fail(tmp_path: Path) -> None:
    each = cell(tmp_path, "a", 1)
    board = Board([each])
    board.end(Ended(each, "stopped", stopped=True))
    assert board.failed == []
