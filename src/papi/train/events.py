"""The events of a run, in the order in which they occur."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from papi.config import Settings
from papi.data.dataset import Dataset
from papi.methods.config import Passes
from papi.runs.schema import Summary
from papi.setup.run import Trained
from papi.training.engine import EpochEnded, Stepped


@dataclass(frozen=True)
class Started:
    """Data and network are ready; training starts or resumes."""

    settings: Settings
    dataset: Dataset
    statistics: dict[str, float]  # of the candidate sets
    parameters: int
    passes: Passes  # through the encoder per step
    device: str
    threads: int
    processes: int
    epoch: int  # where training starts: at zero, or where it was interrupted
    step: int
    steps: int  # per epoch
    problems: tuple[str, ...]  # notes about the data and damaged files


@dataclass(frozen=True)
class Saved:
    """A checkpoint is on disk."""

    file: Path


@dataclass(frozen=True)
class Stopped:
    """Training was asked to stop. The same command continues it."""

    epoch: int
    step: int


@dataclass(frozen=True)
class Finished:
    """The run is complete."""

    summary: Summary
    trained: Trained | None = None

    @property
    def already(self) -> bool:
        """Whether the run was already complete, so that nothing was trained."""
        return self.trained is None


Event = Started | Stepped | EpochEnded | Saved | Stopped | Finished
StopRequested = Callable[[], bool]


def never() -> bool:
    """No stop is requested."""
    return False
