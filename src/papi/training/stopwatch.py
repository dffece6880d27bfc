"""The time that a run takes, over all its parts."""

import time

import torch

from papi import distributed


class Stopwatch:
    """Seconds of a run, over all its parts: in total, in the training steps of this epoch, since the last save.

    The time that processors worked on the steps of this epoch, in all processes, is kept beside: it hardly depends on
    what else runs.
    """

    def __init__(self, total: float = 0.0, lap: float = 0.0, cpu_lap: float = 0.0) -> None:
        now = time.monotonic()
        self._start, self._lap_start, self._save = now - total, now - lap, now
        self._cpu_lap_start = time.process_time() - (cpu_lap if distributed.is_first() else 0.0)

    def total(self) -> float:
        """Seconds since the run began, over all its parts."""
        return time.monotonic() - self._start

    def lap(self) -> float:
        """Seconds since this epoch began."""
        return time.monotonic() - self._lap_start

    def cpu_lap(self) -> float:
        """Seconds that the processors of all processes have worked in this epoch."""
        own = torch.tensor(time.process_time() - self._cpu_lap_start, dtype=torch.float64)
        return float(distributed.total({"seconds": own})["seconds"])

    def new_lap(self) -> None:
        """Begin an epoch."""
        self._lap_start, self._cpu_lap_start = time.monotonic(), time.process_time()

    def since_save(self) -> float:
        """Seconds since the last save."""
        return time.monotonic() - self._save

    def saved(self) -> dict[str, float]:
        """What another stopwatch goes on from."""
        self._save = time.monotonic()
        return {"total": self.total(), "lap": self.lap(), "cpu_lap": self.cpu_lap()}
