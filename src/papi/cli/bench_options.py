"""The options of `papi bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from papi.cli.options import SWITCH, WHOLE
from papi.config import MAX_THREADS
from papi.errors import UserError

_WHAT = Parameter(group=Group("What to show", sort_key=1))
_RUNS = Parameter(group=Group("Runs", sort_key=2))
_WHERE = Parameter(group=Group("Where to train", sort_key=3))


@dataclass(frozen=True)
class Output:
    """What to show of a suite."""

    scale: Annotated[Literal["cpu", "paper"] | None, _WHAT] = None
    """cpu: small network, 10,000 images, minutes a run. paper: the released settings, for GPUs. [default: cpu]"""
    list_suites: Annotated[bool, _WHAT, SWITCH, Parameter(name="--list")] = False
    """List all suites with their number of runs, how many are done, and the time the rest takes."""
    dry_run: Annotated[bool, _WHAT, SWITCH] = False
    """Print the command of every cell, as a comment where it is done, and train nothing."""
    tables_only: Annotated[bool, _WHAT, SWITCH] = False
    """Train nothing: show what is finished."""
    format: Annotated[Literal["terminal", "markdown", "latex", "csv"], _WHAT] = "terminal"
    """How tables are printed."""
    figures: Annotated[Path | None, _WHAT] = None
    """Save the figures of the suite in this folder, as SVG and PNG."""


@dataclass(frozen=True)
class Training:
    """Where the runs of a grid are kept, and where and how many at a time they are trained."""

    out: Annotated[Path, _RUNS] = Path("runs/bench")
    """Folder of the runs. Finished runs in it are found by their settings, whatever their folders are called."""
    data_dir: Annotated[Path, _RUNS] = Path("data")
    """Folder of the datasets."""
    jobs: Annotated[int | None, _WHERE, WHOLE] = None
    """Runs at a time. [default: 1 on this machine; on a cluster, as many as it takes]"""
    threads: Annotated[int | None, _WHERE, WHOLE] = None
    """CPU threads of each run. [default: the cores divided by the jobs; on a cluster 1]"""
    device: Annotated[str, _WHERE] = "auto"
    """cpu, cuda …, as for `papi train`."""
    backend: Annotated[Literal["local", "dask", "ray"], _WHERE] = "local"
    """local, or an existing cluster whose machines see the same folders: dask, ray."""
    address: Annotated[str | None, _WHERE] = None
    """The address of the cluster's scheduler."""

    def __post_init__(self) -> None:
        for name, number in (("--jobs", self.jobs), ("--threads", self.threads)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be 1 or more; got {number}.")
            if number is not None and number > MAX_THREADS:
                raise UserError(f"{name} must be at most {MAX_THREADS}; got {number}.")
