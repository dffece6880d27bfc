"""The parts of a suite of experiments: tables of methods by tasks, and figures of learning curves."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from papi.config import CandidateKind, CandidatesConfig, RunConfig
from papi.data.known.sources import SOURCES
from papi.experiments.compute import epochs_within

Scale = Literal["paper", "cpu"]


@dataclass(frozen=True)
class Entry:
    """A row of a table: a method with its options, under the name used in the paper."""

    label: str
    method: str
    options: tuple[str, ...] = ()
    ceiling: bool = False  # trained with true labels and not ranked

    @property
    def settings(self) -> dict[str, str]:
        """The options by name."""
        return dict(option.split("=", 1) for option in self.options)


@dataclass(frozen=True)
class Task:
    """A column of a table: the data and candidate sets that all its methods are trained on."""

    data: str
    data_label: str
    label: str  # distinguishes tasks on the same data, such as "q = 0.5"
    flip_rate: float = 0.5
    kind: CandidateKind | None = None
    limit: int | None = None
    batch_size: int | None = None
    annotator: str = "small"
    rule: Literal["released", "paper"] = "released"  # for instance-dependent sets
    matrix: str | None = None  # for class-dependent sets

    @property
    def same_images(self) -> str:
        """The data that a ceiling is trained on: datasets with the same images share one run."""
        return (SOURCES[self.data].twin if self.data in SOURCES else None) or self.data

    @property
    def name(self) -> str:
        """Data and task."""
        return f"{self.data_label}, {self.label}"

    def candidates(self, entry: Entry) -> CandidatesConfig:
        """The candidate sets. A ceiling uses none, so all tasks on the same images share one run."""
        if entry.ceiling:
            return CandidatesConfig()
        return CandidatesConfig(
            flip_rate=self.flip_rate, kind=self.kind, annotator=self.annotator, rule=self.rule, matrix=self.matrix
        )


class Published(NamedTuple):
    """A number that others reported: mean and standard deviation, in %."""

    mean: float
    std: float


Place = tuple[str, str, str]  # the labels of an entry, a dataset and a task


@dataclass(frozen=True)
class Table:
    """Methods by tasks, over seeds. `epochs`, `units` or the preset determine the length of the runs."""

    title: str
    entries: tuple[Entry, ...]
    tasks: tuple[Task, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    preset: str = "quick"
    network: str | None = None
    units: int | None = None  # budget of encoder units per image
    epochs: int | None = None
    published: dict[Place, Published] = field(default_factory=dict)
    published_by: str = "paper"  # the name of those numbers in tables

    def length(self, entry: Entry) -> int | None:
        """Epochs of an entry's runs; None means those of the preset."""
        return self.epochs if self.units is None else epochs_within(self.units, entry.method, entry.settings)

    def config(self, entry: Entry, task: Task, seed: int) -> RunConfig:
        """The run of an entry on a task."""
        return RunConfig(
            data=task.same_images if entry.ceiling else task.data,
            limit=task.limit,
            candidates=task.candidates(entry),
            method=entry.method,
            option=entry.options,
            network=self.network,
            preset=self.preset,
            epochs=self.length(entry),
            batch_size=task.batch_size,
            precision="fp32",  # results do not depend on the processor
            seed=seed,
        )

    def cells(self) -> Iterator[RunConfig]:
        """The runs, seed by seed, so that a grid that is stopped early has compared all methods once."""
        for seed in self.seeds:
            for task in self.tasks:
                for entry in self.entries:
                    yield self.config(entry, task, seed)


Measure = Literal["test_accuracy", "prototype_accuracy", "similarity", "right_alone", "accuracy_by_compute"]


@dataclass(frozen=True)
class Figure:
    """Curves of some runs of a table: one panel per task (for `right_alone`, per task and entry)."""

    name: str
    title: str
    measure: Measure
    table: Table


@dataclass(frozen=True)
class Suite:
    """One experiment: `papi bench NAME` runs it."""

    name: str
    title: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()
    costs: bool = False  # show seconds per step and memory instead of ranks

    def cells(self) -> Iterator[RunConfig]:
        """The runs of the tables, then those of the figures; a run may appear twice."""
        for table in (*self.tables, *(figure.table for figure in self.figures)):
            yield from table.cells()
