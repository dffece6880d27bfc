"""`papi watch`: plot the curves of a run in the terminal and update them during training."""

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from papi.cli.terminal import make_console, printable
from papi.errors import UserError
from papi.files import lock
from papi.runs.folder import RunFolder
from papi.runs.schema import EpochRow

CURVES: dict[str, tuple[Callable[[EpochRow], float | None], bool]] = {  # title → value, and whether it is a percentage
    "loss": (lambda row: row.loss, False),
    "test accuracy": (lambda row: row.test_accuracy, True),
    "resolved labels": (lambda row: row.disambiguation_accuracy, True),
    "mean confidence": (lambda row: row.mean_confidence, True),
}
LARGEST = 1e300  # largest value to plot: differences between two such values are finite
HEIGHT = 6  # lines per curve, if the terminal is high enough
LONGEST = 86_400  # seconds between two updates: a day
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # left and right dots of a braille character, from top


def watch(run: Path, /, *, every: float = 1.0) -> None:
    """Plot the curves of a run in the terminal until training ends.

    Parameters
    ----------
    run
        Folder of a run.
    every
        Seconds between two updates.
    """
    if not 0 < every <= LONGEST:
        raise UserError(f"--every must be more than 0 and at most {LONGEST} seconds; got {every:g}.")
    folder = RunFolder(run)
    if not folder.config_file.exists():
        raise UserError(f"{run} contains no run yet: specify the folder that `papi train` writes to (--out).")
    console = make_console()
    if not console.is_terminal:  # a file or a pipe gets the current state once
        going = _is_going(folder)
        console.print(drawing(folder, console.width, HEIGHT, going))
        if not going:
            _conclude(console, folder)
        return
    with Live(console=console, auto_refresh=False) as live:
        try:
            while True:
                going = _is_going(folder)
                live.update(drawing(folder, console.width, fitting(console.height), going), refresh=True)
                if not going:
                    break
                time.sleep(every)
        except KeyboardInterrupt:
            return
    _conclude(console, folder)


def _is_going(folder: RunFolder) -> bool:
    """Return whether a process is training. Check the lock first: it is held until the summary is written."""
    return lock.holder(folder.path)[1] and not folder.summary_file.exists()


def _conclude(console: Console, folder: RunFolder) -> None:
    """Print the next step for a run that is not training."""
    if folder.summary_file.exists():
        console.print(f"Next: papi report {shlex.quote(str(folder.path))} --open", soft_wrap=True)
        return
    from papi.runs.doctor import capitalised, continuing  # imports torch, which plotting does not need

    again = capitalised(continuing(folder.begun(), folder.path))
    console.print(f"This run is unfinished and not training. {again} continues it.", soft_wrap=True)


def fitting(lines: int) -> int:
    """Return the number of lines per curve so that all curves and their titles fit into the terminal."""
    return max(2, min(HEIGHT, (lines - 3) // len(CURVES) - 1))


def drawing(folder: RunFolder, width: int, height: int, going: bool) -> Group:
    """Plot the current state of a run: its progress and a curve for each metric."""
    rows = folder.read_rows()
    epochs = folder.begun().epochs or len(rows) or 1
    parts = [Text(_state(folder, rows, epochs, going), style="bold"), Text(printable(str(folder.path)), style="dim")]
    for title, (measured, percent) in CURVES.items():
        known = [(row.epoch, value) for row in rows if (value := measured(row)) is not None and row.epoch < epochs]
        if known:
            parts.append(Text(f"{title}  {_number(known[-1][1], percent)}"))
            parts.append(Text("\n".join(curve(known, epochs, min(width, 80) - 9, height, percent))))
    return Group(*parts)


def _state(folder: RunFolder, rows: Sequence[EpochRow], epochs: int, going: bool) -> str:
    if folder.summary_file.exists():
        return f"Finished: {len(rows)} epochs"
    if not rows:
        return "No epoch has finished yet"
    left = (epochs - len(rows)) * rows[-1].seconds / len(rows)
    ago = max(0.0, time.time() - folder.metrics_file.stat().st_mtime)
    done = f"{len(rows)} of {epochs} epochs, last one finished {ago:.0f} s ago"
    return f"{done}, about {left:.0f} s left" if going else done


def _number(value: float, percent: bool) -> str:
    return f"{value:.1%}" if percent else f"{value:.3f}"


def curve(points: Sequence[tuple[int, float]], epochs: int, columns: int, height: int, percent: bool) -> list[str]:
    """Draw a curve as lines of braille characters, two dots wide and four high, between its extreme values."""
    columns = max(10, columns)
    finite = [(epoch, value) for epoch, value in points if abs(value) < LARGEST]
    if not finite:
        return ["  no finite values"]
    low, high = min(value for _, value in finite), max(value for _, value in finite)
    span = high - low or 1.0
    cells = [[0] * columns for _ in range(height)]
    places = [
        (
            round(epoch / max(1, epochs - 1) * (2 * columns - 1)),
            round((high - value) / span * (4 * height - 1)) if high > low else 2 * height,
        )
        for epoch, value in finite
    ]
    for (x, y), (next_x, next_y) in zip(places, [*places[1:], places[-1]], strict=True):
        for step in range(max(1, next_x - x)):
            across = x + step
            down = round(y + (next_y - y) * step / max(1, next_x - x))
            if across < 2 * columns:
                cells[down // 4][across // 2] |= _DOTS[down % 4][across % 2]
    labels = {0: _number(high, percent), height - 1: _number(low, percent)} if high > low else {}
    return [
        f"{labels.get(line, ''):>7} " + "".join(chr(0x2800 + dots) for dots in row) for line, row in enumerate(cells)
    ]
