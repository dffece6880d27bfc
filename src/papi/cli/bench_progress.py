"""The progress of a grid in the terminal: finished, running and failed cells, and the time left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from papi.cli.terminal import printable
from papi.files.reading import ROWS_BYTES, read_bytes

if TYPE_CHECKING:
    from papi.experiments.grid import Cell, Ended

SHOWN = 12  # running cells


class Board:
    """The state of all cells. It is read from their folders, so it includes cells on other machines."""

    def __init__(self, cells: "list[Cell]") -> None:
        self.cells = cells
        self.failed: list[Ended] = []
        self.began = time.time()
        self.work_before = sum(cell.work * self.share(cell) for cell in cells)
        self.console: Console | None = None

    def end(self, ended: "Ended") -> None:
        """Record a cell that has ended, and log it if the output is not a terminal."""
        if ended.error and not ended.stopped:
            self.failed.append(ended)
        if self.console is not None and not self.console.is_terminal:  # a log gets one line per cell
            state = "stopped" if ended.stopped else f"failed: {printable(ended.error)}" if ended.error else "done"
            count = f"[{len(self.finished()) + len(self.failed)}/{len(self.cells)}]"
            self.console.print(f"{count} {ended.cell.folder.name}: {state}", soft_wrap=True)

    def share(self, cell: "Cell") -> float:
        """Return the fraction of a cell's epochs that are done."""
        try:
            rows = read_bytes(cell.folder / "metrics.jsonl", ROWS_BYTES, inside=cell.folder)
            return min(1.0, rows.count(b"\n") / cell.epochs)
        except OSError:
            return 0.0

    def finished(self) -> "list[Cell]":
        """Return the finished cells, including those that finished before this grid started."""
        return [cell for cell in self.cells if (cell.folder / "summary.json").exists()]

    def running(self) -> "list[Cell]":
        """Return the cells that began after this grid started and have not ended."""
        ended = {each.cell.key for each in self.failed} | {cell.key for cell in self.finished()}
        return [cell for cell in self.cells if cell.key not in ended and self._begun(cell)]

    def _begun(self, cell: "Cell") -> bool:
        try:
            return cell.lock.stat().st_mtime >= self.began
        except OSError:
            return False

    def seconds_left(self) -> float | None:
        """Return the time left, estimated from the work done since the start; None before any work is done."""
        total = sum(cell.work for cell in self.cells) - sum(each.cell.work for each in self.failed)
        trained = float(sum(cell.work for cell in self.finished()))
        trained += sum(cell.work * self.share(cell) for cell in self.running())
        since = trained - self.work_before
        return (time.time() - self.began) * (total - trained) / since if since > 0 else None

    def __rich__(self) -> Group:
        running, left = self.running(), self.seconds_left()
        told = f"{len(self.finished())} of {len(self.cells)} runs done, {len(running)} running"
        told += f", {len(self.failed)} failed" if self.failed else ""
        told += f", about {left / 60:.0f} min left" if left is not None else ""
        table = Table("running", "epochs done")
        for cell in running[:SHOWN]:
            table.add_row(cell.folder.name, f"{self.share(cell) * cell.epochs:.0f} of {cell.epochs}")
        failed = [Text(f"failed: {each.cell.folder.name}: {printable(each.error)}") for each in self.failed[-SHOWN:]]
        return Group(Text(told, "bold"), table, *failed)

    @contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        """Show the board in the terminal inside this context; a log gets lines instead."""
        self.console = console
        if not console.is_terminal:
            console.print(f"{len(self.cells)} runs to train")
            yield
            return
        with Live(self, console=console, refresh_per_second=1, transient=True):
            yield
