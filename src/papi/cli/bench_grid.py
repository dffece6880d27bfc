"""Trains the cells of a grid and shows the progress in the terminal."""

import sys
from collections.abc import Sequence
from contextlib import suppress

from papi.cli.bench_progress import Board
from papi.cli.terminal import make_console, printable
from papi.experiments.grid import Backend, Cell, Ended, Grid


def train_cells(todo: Sequence[Cell], jobs: int | None, backend: Backend, address: str | None) -> list[Ended]:
    """Train cells and return those that failed. A signal ends the process after the runs have saved."""
    if not todo:
        return []
    console = make_console()
    board = Board(list(todo))
    grid = Grid(jobs=jobs or (1 if backend == "local" else None), backend=backend, address=address)
    with board.shown(console), suppress(KeyboardInterrupt):  # Ctrl-C stops a grid on a cluster
        for ended in grid.run(todo):
            board.end(ended)
    if grid.stopped_by is not None:
        done = f"{len(board.finished())} of {len(todo)} runs trained"
        console.print(f"Stopped with {done}. Run the same command to continue.")
        sys.exit(128 + grid.stopped_by)
    for ended in board.failed:
        console.print(f"Failed: {ended.cell.folder.name}: {printable(ended.error)}", soft_wrap=True)
    return board.failed
