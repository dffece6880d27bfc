"""Implements `papi tune`: sample trials, train them, and show which one each criterion selects."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from joblib import cpu_count

from papi.cli.bench_grid import train_cells
from papi.cli.terminal import make_console
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.known.sources import SOURCES
from papi.errors import UserError
from papi.experiments import cells, rendering
from papi.experiments.grid import Backend, Cell
from papi.experiments.picks import ORACLE, By, Judged, pick, picks_sheet, ranked, read_trial, trials_sheet
from papi.experiments.search import Trial, space_of, trials
from papi.methods import find_method
from papi.setup.data import load_dataset
from papi.setup.settings import HOLDOUT
from papi.train import settings_for


@dataclass(frozen=True)
class Plan:
    """The options of a search."""

    config: RunConfig
    budget: int
    by: By
    ranges: tuple[str, ...]
    out: Path | None
    jobs: int | None
    backend: Backend
    address: str | None

    @property
    def folder(self) -> Path:
        """Folder of the trials."""
        data, method = Path(self.config.data).resolve().stem, self.config.method.rpartition(":")[2]
        return self.out or Path("runs") / "tune" / f"{data}-{method}"


def run_search(plan: Plan, *, dry_run: bool, format: str) -> None:
    """Train the trials that have no result yet, and show all. Exit with code 1 if no trial can be scored."""
    find_method(plan.config.method)  # check the method before reading the data, which may take long
    config = _held_out(plan.config, plan.by)
    dataset = load_dataset(config).limited(config.limit)
    if plan.by == ORACLE and dataset.test_labels is None:
        raise UserError(
            f"--by accuracy needs test samples with true labels, but {dataset.name} has none: use another criterion."
        )
    settings = settings_for(config, dataset)
    config = replace(config, precision=settings.precision)  # the same for all trials, also on other machines
    drawn = trials(config, dataset, space_of(config, settings, plan.ranges), plan.budget)
    todo = {trial.number: _cell(trial, plan, dataset) for trial in drawn}
    if dry_run:
        for cell in todo.values():
            print(shlex.join(["papi", "train", *cell.arguments, "--out", str(plan.folder / cell.folder.name)]))
        return
    missing = [cell for cell in todo.values() if not (cell.folder / "summary.json").exists()]
    train_cells(missing, plan.jobs, plan.backend, plan.address)
    judged = [found for trial in drawn if (found := read_trial(trial, todo[trial.number].folder)) is not None]
    _show(plan, drawn, judged, format)
    if not ranked(judged, plan.by):
        sys.exit(1)


def _held_out(config: RunConfig, by: By) -> RunConfig:
    """Return the config of the first trial, with a validation set."""
    if config.data_holdout is None:
        return replace(config, data_holdout=HOLDOUT)
    if config.data_holdout == 0 and by != ORACLE:
        raise UserError(f"--by {by} needs a validation set: set --data.holdout to a fraction above 0, or leave it out.")
    return config


def _cell(trial: Trial, plan: Plan, dataset: Dataset) -> Cell:
    """Return a trial as a cell of a grid. The machines of a cluster need absolute paths."""
    share = max(1, cpu_count() // (plan.jobs or 1)) if plan.backend == "local" else 1
    settings, config = trial.settings, replace(trial.config, threads=None)  # the grid sets the threads
    cost = find_method(settings.method).Config(**settings.options).encoder_passes.units
    return Cell(
        key=trial.key,
        data=config.data,
        folder=plan.folder.resolve() / f"trial{trial.number:03d}-{trial.key[:8]}",
        arguments=tuple(cells.arguments(config if plan.backend == "local" else _anywhere(config))),
        threads=plan.config.threads or share,
        epochs=settings.epochs,
        work=cost * settings.epochs * len(dataset.samples),
    )


def _anywhere(config: RunConfig) -> RunConfig:
    """Return the config with absolute paths."""
    sets = config.candidates
    files = {name: path.resolve() for name in ("file", "groups") if (path := getattr(sets, name)) is not None}
    known = config.data in SOURCES
    return replace(
        config,
        data=config.data if known else str(Path(config.data).resolve()),
        data_dir=config.data_dir.resolve(),
        candidates=replace(sets, **files),
    )


def _show(plan: Plan, drawn: Sequence[Trial], judged: Sequence[Judged], format: str) -> None:
    console = make_console()
    sheets = [trials_sheet(judged, plan.by), picks_sheet(judged, plan.by)]
    if format == "markdown":
        print("\n".join(map(rendering.markdown, sheets)))
    else:
        for sheet in sheets:
            console.print(rendering.terminal(sheet))
    if len(drawn) < plan.budget:
        console.print(f"These ranges allow no more than {len(drawn)} different trials.")
    if len(judged) < len(drawn):
        console.print(
            f"{len(drawn) - len(judged)} of {len(drawn)} trials have no result; run the same command to try again."
        )
    best = pick(judged, plan.by)
    if best is None:
        console.print("No trial has a score.")
        return
    if plan.by == ORACLE:
        console.print(
            "This selection is an oracle: it uses the true labels of the test samples, so its test accuracy is "
            "optimistic. Report the trial that a criterion without true labels selects.",
            soft_wrap=True,
        )
    config = replace(best.trial.config, data_holdout=plan.config.data_holdout)
    command = shlex.join(["papi", "train", *cells.arguments(config)])
    console.print(f"Next, with all training samples: {command}", soft_wrap=True)
