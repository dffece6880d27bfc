"""Trains the cells of a grid while the terminal shows how it goes."""

import sys
from collections.abc import Sequence
from contextlib import suppress

from papi.cli.bench_progress import Board
from papi.cli.terminal import make_console, printable
from papi.experiments.grid import Backend, Cell, Ended, Grid


def train_cells(todo: Sequence[Cell], jobs: int | None, backend: Backend, address: str | None) -> list[Ended]:
    """Train cells, and return those that failed. A signal ends the process, once the runs have saved."""
    if not todo:
        return []
    console = make_console()
    board = Board(list(todo))
    grid = Grid(jobs=jobs or (1 if backend == "local" else None), backend=backend, address=address)
    with board.shown(console), suppress(KeyboardInterrupt):  # how a grid on a cluster stops
        for ended in grid.run(todo):
            board.end(ended)
    if grid.stopped_by is not None:
        console.print(f"Stopped with {len(board.finished())} of {len(todo)} cells trained. The same command continues.")
        sys.exit(128 + grid.stopped_by)
    for ended in board.failed:
        console.print(f"Failed: {ended.cell.folder.name}: {printable(ended.error)}", soft_wrap=True)
    return board.failed
