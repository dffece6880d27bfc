"""Continues a finished run with labels decided by a person."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from papi.config import RunConfig
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.data.digest import same_data
from papi.errors import UserError
from papi.methods import find_method
from papi.runs.decisions import read_decisions
from papi.runs.fixing import fix
from papi.runs.folder import RunFolder
from papi.runs.parent import read_parent
from papi.runs.samples import trained_on
from papi.runs.schema import Record
from papi.setup.data import load_dataset
from papi.setup.encoder import encoder_of, seen_by
from papi.setup.settings import complete, settings_for
from papi.setup.stopped import with_named_code
from papi.train.events import Event, Stopped, StopRequested, never
from papi.train.start import fit

EPOCHS_SHARE = 0.25  # fraction of the parent's epochs: its weights are a good start
RATE_SHARE = 0.1  # fraction of the parent's learning rate: the full rate would destroy what was learned


def train_on(
    path: Path,
    decisions_file: Path,
    folder: Path,
    *,
    epochs: int | None = None,
    data_dir: Path | None = None,
    method: str | None = None,
    network: str | None = None,
    stop_requested: StopRequested = never,
    progress: PreparationProgress = silent,
) -> Iterator[Event]:
    """Continue the run in `path` in a new folder, with labels decided by a person as in `papi.runs.fixing.fix`.

    It uses the settings of this parent run, with fewer epochs and a smaller learning rate, and starts from its weights,
    its prototypes if it has any, and its confidence. A method or network from outside the package must be named again:
    no code is imported only because a file names it.
    """
    finished = RunFolder(path)
    record = finished.read_record()
    if record is None or not finished.arrays_file.exists():
        raise UserError(f"{path} does not contain a finished run: specify a folder in which `papi train` has finished.")
    config = with_named_code(finished.read_run_config(), path, method, network)
    config = replace(config, data_dir=data_dir or config.data_dir)
    encoder = encoder_of(record, config, path, fetch=network is not None)
    sets, arrays = finished.read_kept()
    candidates = sets.candidates
    images = load_dataset(config, progress=progress, preparation=record.preparation)
    dataset = trained_on(images.limited(config.limit), sets)
    _require_data_of(record, path, dataset, candidates)
    answers = read_decisions(decisions_file, len(candidates), dataset.class_names, dataset.file_names)
    fixed = fix(answers, candidates, arrays.confidence, dataset.prior)
    dataset = replace(dataset, prior=fixed.prior, initial_confidence=fixed.confidence, notes=fixed.told)
    if len(fixed.kept) < len(candidates):
        dataset = dataset.taking(fixed.kept)
    seen = seen_by(encoder, dataset, config, stop_requested, progress)
    if seen is None:
        yield Stopped(0, 0)
        return
    settings = settings_for(_shortened(config, epochs), seen)
    decided = fixed.candidates[fixed.kept]
    yield from fit(seen, decided, settings, RunFolder(folder), stop_requested, read_parent(path), encoder=encoder)


def _require_data_of(record: Record, path: Path, dataset: Dataset, candidates: np.ndarray) -> None:
    """Stop if the data are not those of the run: decisions would apply to the wrong images."""
    if not same_data(record.data_hash, dataset, candidates):
        raise UserError(
            f"the data of {path} have changed since it was trained: restore the original data, or train a new run on "
            "the current data."
        )


def _shortened(config: RunConfig, epochs: int | None) -> RunConfig:
    """Use fewer epochs, a smaller learning rate and no warm-up, which is not needed after the first training."""
    settings = complete(config, features=False, sets_given=True)  # a record has every value, so no defaults are used
    warms_up = "warmup_epochs" in {field.name for field in fields(find_method(config.method).Config)}
    return replace(
        config,
        epochs=epochs or max(1, round(EPOCHS_SHARE * settings.epochs)),
        optim=replace(config.optim, lr=RATE_SHARE * settings.optim.lr),
        option=(*config.option, "warmup_epochs=0") if warms_up else config.option,
    )
