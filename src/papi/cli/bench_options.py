"""The options of `papi bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from papi.cli.options import SWITCH, WHOLE
from papi.config import MAX_THREADS
from papi.errors import UserError

_WHAT = Parameter(group=Group("Output", sort_key=1))
_RUNS = Parameter(group=Group("Runs", sort_key=2))
_WHERE = Parameter(group=Group("Where to train", sort_key=3))


@dataclass(frozen=True)
class Output:
    """What to print and save for a suite."""

    scale: Annotated[Literal["cpu", "paper"] | None, _WHAT] = None
    """Size of the experiments. cpu: small network, 10,000 images, minutes per run. paper: the released settings, for
    GPUs. [default: cpu]"""
    list_suites: Annotated[bool, _WHAT, SWITCH, Parameter(name="--list")] = False
    """List all suites with the number of runs, the number of finished runs, and the estimated time for the others."""
    dry_run: Annotated[bool, _WHAT, SWITCH] = False
    """Print the command of every run without training; finished runs are commented out."""
    tables_only: Annotated[bool, _WHAT, SWITCH] = False
    """Show the finished runs without training."""
    format: Annotated[Literal["terminal", "markdown", "latex", "csv"], _WHAT] = "terminal"
    """Format of the tables."""
    figures: Annotated[Path | None, _WHAT] = None
    """Save the figures of the suite in this folder as SVG and PNG."""


@dataclass(frozen=True)
class Training:
    """Where to store the runs of a grid, where to train them, and how many at once."""

    out: Annotated[Path, _RUNS] = Path("runs/bench")
    """Folder of the runs. Finished runs in it are found by their settings, whatever the name of their folder."""
    data_dir: Annotated[Path, _RUNS] = Path("data")
    """Folder where known datasets are stored."""
    jobs: Annotated[int | None, _WHERE, WHOLE] = None
    """Number of runs to train at once. [default: 1 on this machine; on a cluster, as many as fit]"""
    threads: Annotated[int | None, _WHERE, WHOLE] = None
    """Number of CPU threads per run. [default: the number of cores divided by the jobs; 1 on a cluster]"""
    device: Annotated[str, _WHERE] = "auto"
    """Device to train on: cpu, cuda …, as in `papi train`."""
    backend: Annotated[Literal["local", "dask", "ray"], _WHERE] = "local"
    """Where to train: local, or dask or ray for an existing cluster whose machines share these folders."""
    address: Annotated[str | None, _WHERE] = None
    """Address of the cluster's scheduler."""

    def __post_init__(self) -> None:
        for name, number in (("--jobs", self.jobs), ("--threads", self.threads)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be 1 or more; got {number}.")
            if number is not None and number > MAX_THREADS:
                raise UserError(f"{name} must be at most {MAX_THREADS}; got {number}.")
