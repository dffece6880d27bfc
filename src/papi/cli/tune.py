"""`papi tune`: tune the settings of a method by random search."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from papi.cli.options import SWITCH, WHOLE, config_options, print_all_options
from papi.config import MAX_THREADS, RunConfig
from papi.errors import UserError

_DEFAULT = RunConfig()
_MOST = 100_000  # trials
_SEARCH = Parameter(group=Group("Search", sort_key=-2))
_WHERE = Parameter(group=Group("Where to train", sort_key=-1))


@config_options(experts=False)
def tune(
    method: str = "papi",
    /,
    *,
    budget: Annotated[int, _SEARCH, WHOLE] = 20,
    by: Annotated[
        Literal["covering-rate", "approximated-accuracy", "candidate-likelihood", "accuracy"], _SEARCH
    ] = "covering-rate",
    ranges: Annotated[tuple[str, ...], _SEARCH, Parameter(name="--range", negative="")] = (),
    dry_run: Annotated[bool, _SEARCH, SWITCH] = False,
    format: Annotated[Literal["terminal", "markdown"], _SEARCH] = "terminal",
    out: Annotated[Path | None, _WHERE] = None,
    jobs: Annotated[int | None, _WHERE, WHOLE] = None,
    backend: Annotated[Literal["local", "dask", "ray"], _WHERE] = "local",
    address: Annotated[str | None, _WHERE] = None,
    config: Annotated[RunConfig, Parameter(name="*")] = _DEFAULT,
    help_all: Annotated[bool, _SEARCH, SWITCH] = False,
) -> None:
    """Tune the settings of a method by random search, without true labels.

    Parameters
    ----------
    method
        Name of a method, or `package.module:Class` for your own; `papi methods NAME` lists its settings.
    budget
        Number of trials. The first one uses the defaults of `papi train`.
    by
        Criterion that scores a trial on the candidate labels of its validation set; accuracy uses the true labels of
        the test set instead, as an oracle for comparison.
    ranges
        Range to sample a setting from, instead of the declared one: NAME=LOW..HIGH or NAME=A,B,C; can be repeated. NAME
        is a setting of the method, optim.lr, optim.weight-decay, epochs or batch-size.
    dry_run
        Print the command of every trial without training.
    format
        Format of the tables.
    out
        Folder of the trials. [default: a folder in runs/tune, named after the data and the method]
    jobs
        Number of trials to train at once. [default: 1 on this machine; on a cluster, as many as fit]
    backend
        Where to train: local, or dask or ray for an existing cluster whose machines share these folders.
    address
        Address of the cluster's scheduler.
    help_all
        Show all options, including expert options, and exit.
    """
    if help_all:
        print_all_options(tune, "papi tune")
        return
    if not 1 <= budget <= _MOST:
        raise UserError(f"--budget must be between 1 and {_MOST} trials; got {budget}.")
    if jobs is not None and not 1 <= jobs <= MAX_THREADS:
        raise UserError(f"--jobs must be between 1 and {MAX_THREADS}; got {jobs}.")
    if config.method not in (_DEFAULT.method, method):
        raise UserError(f"got two methods, {method} and --method {config.method}: tune one at a time.")
    from papi.cli.tune_search import Plan, run_search  # imports torch: check the options first

    plan = Plan(replace(config, method=method), budget, by, ranges, out, jobs, backend, address)
    run_search(plan, dry_run=dry_run, format=format)
