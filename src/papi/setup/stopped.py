"""A run that has not ended, opened at its last checkpoint to use what it has learned so far. Nothing is written."""

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
    """Whether a folder holds a run with a checkpoint and no result yet."""
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
    """What a run would leave if it ended at its last checkpoint, and a sentence that says which that is.

    The data of the run are read again. Code from outside the package has to be named once more, as for `train_on`.
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
            f"the data of {path} have changed since it began, and it has not finished: bring back those it began with."
        )
    seen = seen_by(encoder, dataset, config, progress=progress)
    assert seen is not None, "nobody has stopped it"
    run = prepare(seen, sets.candidates, settings_for(config, seen), record.identity, encoder=encoder)
    state = _newest(folder, run)
    run.method.load_state_dict(state["method"])
    pick = Pick(run.settings.select, state.get("picked"))
    rows = [EpochRow.from_json(row) for row in state["rows"]]
    if state["step"]:
        rows.append(run.measure_epoch(state).row)
    _, trained = run.conclude(rows, pick, None, 0, state["epoch"])
    place = f"in epoch {state['epoch'] + 1}" if state["step"] else f"after epoch {state['epoch']}"
    return trained, f"this run has not finished: its last checkpoint, {place} of {run.settings.epochs}, is used."


def model_of(run: Path, device: str, method: str | None, network: str | None) -> tuple[Model, str | None]:
    """The model of a run; if the run has not finished, that of its last checkpoint, and a sentence that says so.

    It lies on the device that a person has named, or `auto`.
    """
    place = find_device(device)
    if not run.is_dir() or not is_stopped(run):
        return load(run, str(place), network), None
    trained, note = open_stopped(run, method=method, network=network)
    return Model(trained.method.result, trained.card, place, trained.encoder), note


def with_named_code(config: RunConfig, path: Path, method: str | None, network: str | None) -> RunConfig:
    """The config of a run with what a person has named. Stop if it needs code that they have not."""
    for option, found, named in (("method", config.method, method), ("network", config.network, network)):
        if named is None and needs_import(found or ""):
            raise UserError(
                f"{path} was trained with the {option} {found}, and no code is run only because a file names it: if "
                f"you trust it, name it once more with --{option} {found}."
            )
    return replace(config, method=method or config.method, network=network or config.network)


def _newest(folder: RunFolder, run: Run) -> checkpoint.State:
    """The newest whole checkpoint. A damaged one stays where it is: this only reads."""
    damages: list[str] = []
    for file in (folder.checkpoint_file, checkpoint.previous(folder.checkpoint_file)):
        if not file.exists():
            continue
        try:
            return checkpoint.load(file, identity_hash(run.identity), torch.device("cpu"), run.fitted)
        except checkpoint.DamagedCheckpointError as damage:
            damages.append(str(damage))
    raise UserError(f"{folder.path} has no checkpoint that can be read ({'; '.join(damages)}): train the run again.")
