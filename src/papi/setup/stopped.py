"""Opens an unfinished run at its last checkpoint, to use its current model. Nothing is written."""

from dataclasses import replace
from pathlib import Path

import torch

from papi.config import RunConfig
from papi.data.dataset import Progress, silent
from papi.data.digest import same_data
from papi.errors import UserError
from papi.files.outside import needs_import
from papi.inference import Model, load
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash
from papi.runs.samples import trained_on
from papi.runs.schema import EpochRow
from papi.setup.data import load_dataset
from papi.setup.encoder import encoder_of, seen_by
from papi.setup.run import Run, Trained, prepare
from papi.setup.settings import settings_for
from papi.training.devices import find_device
from papi.training.selection import Pick


def is_stopped(path: Path) -> bool:
    """Return whether a folder contains a run with a checkpoint but no result."""
    folder = RunFolder(path)
    kept = any(file.exists() for file in (folder.checkpoint_file, checkpoint.previous(folder.checkpoint_file)))
    return kept and folder.config_file.exists() and not folder.summary_file.exists()


def open_stopped(
    path: Path,
    *,
    data_dir: Path | None = None,
    method: str | None = None,
    network: str | None = None,
    progress: Progress = silent,
) -> tuple[Trained, str]:
    """Return the results of a run as if it ended at its last checkpoint, and a note that says which one.

    The data of the run are read again. Code from outside the package must be named again, as for `train_on`.
    """
    folder = RunFolder(path)
    record = folder.begun()
    config = with_named_code(folder.read_run_config(), path, method, network)
    config = replace(config, data_dir=data_dir or config.data_dir)
    encoder = encoder_of(record, config, path, fetch=network is not None)
    sets = folder.read_sets()
    images = load_dataset(config, progress=progress, preparation=record.preparation)
    dataset = trained_on(images.limited(config.limit), sets)
    if not same_data(record.data_hash, dataset, sets.candidates):
        raise UserError(
            f"the data of the unfinished run {path} have changed since it began: restore the original data."
        )
    seen = seen_by(encoder, dataset, config, progress=progress)
    assert seen is not None, "it cannot be interrupted"
    run = prepare(seen, sets.candidates, settings_for(config, seen), record.identity, encoder=encoder)
    state = _newest(folder, run)
    run.method.load_state_dict(state["method"])
    pick = Pick(run.settings.select, state.get("picked"))
    rows = [EpochRow.from_json(row) for row in state["rows"]]
    if state["step"]:
        rows.append(run.measure_epoch(state).row)
    _, trained = run.conclude(rows, pick, None, 0, state["epoch"])
    place = f"in epoch {state['epoch'] + 1}" if state["step"] else f"after epoch {state['epoch']}"
    return trained, f"this run is unfinished; using its last checkpoint, {place} of {run.settings.epochs}."


def model_of(run: Path, device: str, method: str | None, network: str | None) -> tuple[Model, str | None]:
    """Load the model of a run on a device. For an unfinished run, use its last checkpoint and return a note."""
    place = find_device(device)
    if not run.is_dir() or not is_stopped(run):
        return load(run, str(place), network), None
    trained, note = open_stopped(run, method=method, network=network)
    return Model(trained.method.result, trained.card, place, trained.encoder), note


def with_named_code(config: RunConfig, path: Path, method: str | None, network: str | None) -> RunConfig:
    """Return the config of a run with the named code. Raise `UserError` if it needs code that is not named."""
    for option, found, named in (("method", config.method, method), ("network", config.network, network)):
        if named is None and needs_import(found or ""):
            raise UserError(
                f"{path} was trained with the {option} {found}, which is code from outside PaPi: if you trust it, add "
                f"--{option} {found}."
            )
    return replace(config, method=method or config.method, network=network or config.network)


def _newest(folder: RunFolder, run: Run) -> checkpoint.State:
    """Return the newest intact checkpoint. Damaged ones are left in place, because this only reads."""
    damages: list[str] = []
    for file in (folder.checkpoint_file, checkpoint.previous(folder.checkpoint_file)):
        if not file.exists():
            continue
        try:
            return checkpoint.load(file, identity_hash(run.identity), torch.device("cpu"), run.fitted)
        except checkpoint.DamagedCheckpointError as damage:
            damages.append(str(damage))
    raise UserError(f"{folder.path} has no readable checkpoint ({'; '.join(damages)}): train the run again.")
