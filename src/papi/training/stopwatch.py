"""Measures the time of a run, including the time before it was resumed."""

import time

import torch

from papi import distributed


class Stopwatch:
    """Seconds of a run, including earlier parts: in total, in this epoch's training steps, and since the last save.

    It also measures the CPU time of this epoch over all processes, which hardly depends on other programs.
    """

    def __init__(self, total: float = 0.0, lap: float = 0.0, cpu_lap: float = 0.0) -> None:
        now = time.monotonic()
        self._start, self._lap_start, self._save = now - total, now - lap, now
        self._cpu_lap_start = time.process_time() - (cpu_lap if distributed.is_first() else 0.0)

    def total(self) -> float:
        """Seconds of the whole run so far, including earlier parts."""
        return time.monotonic() - self._start

    def lap(self) -> float:
        """Seconds since this epoch began."""
        return time.monotonic() - self._lap_start

    def cpu_lap(self) -> float:
        """CPU seconds of all processes in this epoch."""
        own = torch.tensor(time.process_time() - self._cpu_lap_start, dtype=torch.float64)
        return float(distributed.total({"seconds": own})["seconds"])

    def new_lap(self) -> None:
        """Start a new epoch."""
        self._lap_start, self._cpu_lap_start = time.monotonic(), time.process_time()

    def since_save(self) -> float:
        """Seconds since the last save."""
        return time.monotonic() - self._save

    def saved(self) -> dict[str, float]:
        """Arguments with which another stopwatch continues from here."""
        self._save = time.monotonic()
        return {"total": self.total(), "lap": self.lap(), "cpu_lap": self.cpu_lap()}
