"""The contents of a run folder for the report, with messages about parts that could not be read."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from papi.config import RunConfig, Select
from papi.data.dataset import Dataset, Levels
from papi.data.own.folders import locate
from papi.report.fitting import Kept
from papi.report.measures import Measure, last
from papi.runs.identity import identity_hash
from papi.runs.labels import Resolved, Together, find_together, resolve
from papi.runs.schema import EpochRow, Record, Summary


@dataclass
class Run:
    """The contents of a run. Missing parts are None or empty, and `problems` explains why."""

    path: Path
    record: Record | None = None
    config: RunConfig | None = None  # also None if the settings are from another version of PaPi
    rows: tuple[EpochRow, ...] = ()
    finished: bool = False
    summary: Summary | None = None
    candidates: np.ndarray | None = None  # (N, K) bool
    kept: Kept = field(default_factory=Kept)
    dataset: Dataset | None = None  # what the run was trained on; None if the data are missing
    class_names: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.resolve().name

    @property
    def identity(self) -> str:
        """The key of the decisions that a browser stores: the same for the same run, wherever its folder is."""
        return identity_hash({"path": str(self.path.resolve())} if self.record is None else self.record.identity)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._setting("method") or ("unknown method" if self.summary is None else self.summary.method)

    @property
    def data(self) -> str:
        """The data in the settings: a known dataset or a path; empty if unknown."""
        return self._setting("data")

    @property
    def data_name(self) -> str:
        """The name of the dataset, without the path to it."""
        found = (self.data or "unknown data") if self.summary is None else self.summary.dataset
        return found.replace("\\", "/").rstrip("/").rpartition("/")[2]

    @property
    def epochs(self) -> int | None:
        """The planned number of epochs."""
        if self.config is not None:
            return self.config.epochs
        return None if self.summary is None else self.summary.epochs

    @property
    def select(self) -> Select:
        """The criterion by which the run selects the epoch to keep."""
        if self.config is not None:
            return self.config.select
        return "last" if self.summary is None else self.summary.select

    @property
    def labels(self) -> np.ndarray | None:
        """True labels of the training images, if known."""
        return None if self.dataset is None else self.dataset.labels

    @property
    def test_labels(self) -> np.ndarray | None:
        """True labels of the test images, if there are any."""
        return None if self.dataset is None else self.dataset.test_labels

    @cached_property
    def resolved(self) -> Resolved | None:
        """The resolved label of each training image."""
        if self.candidates is None or self.kept.confidence is None:
            return None
        return resolve(self.candidates, self.kept.confidence, self.kept.second_opinion, self.together)

    @cached_property
    def together(self) -> Together | None:
        """How often labels occur together."""
        if self.candidates is None or self.kept.confidence is None:
            return None
        return find_together(self.candidates, self.kept.confidence)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of candidates of each training image, `(N,)`; empty if unknown."""
        return np.empty(0, int) if self.candidates is None else np.asarray(self.candidates.sum(1))

    @cached_property
    def photo_folder(self) -> Path | None:
        """The folder that the file names of the training images are relative to; None if it has no photos."""
        names = None if self.dataset is None else self.dataset.file_names
        if names is None or self.config is None:
            return None
        data = Path(self.config.data)
        folder = data if data.is_dir() else data.parent
        # Check that files exist: a table may name files that are not there.
        return folder if any(isinstance(locate(folder, name), Path) for name in names[:3]) else None

    def last(self, measure: Measure) -> float | None:
        """Return the value of the last epoch that has one."""
        return last(self.rows, measure)

    def class_name(self, k: int) -> str:
        """Return the name of a class, or its number if it has none."""
        return self.class_names[k] if 0 <= k < len(self.class_names) else f"class {k}"

    @property
    def levels(self) -> Levels:
        """The group of each class at each level of the class hierarchy, from the top down; empty without one."""
        levels = () if self.dataset is None else self.dataset.levels
        return levels if all(len(level) == len(self.class_names) for level in levels) else ()

    def group(self, k: int) -> str:
        """Return the ancestors of a class in the hierarchy, or its own name if it has none; empty without one."""
        above = [level[k] for level in self.levels if level[k] != self.class_name(k)]
        return " › ".join(above) or (self.class_name(k) if self.levels else "")

    def by_group(self, classes: Iterable[int]) -> list[int]:
        """Return classes grouped in the order of the hierarchy; unchanged without one."""
        places = [{name: k for k, name in reversed(list(enumerate(level)))} for level in self.levels]
        return sorted(classes, key=lambda k: [at[level[k]] for at, level in zip(places, self.levels, strict=True)])

    def _setting(self, name: str) -> str:
        """Return a string setting. This also works for settings from another version of PaPi."""
        values = {} if self.record is None else self.record.config or self.record.identity
        found = values.get(name)
        return found if isinstance(found, str) else ""
