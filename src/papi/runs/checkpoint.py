"""Saving a run so that a kill at any moment costs at most the steps since the last save.

A checkpoint is one line of JSON (format version, hash of the run's config, length and SHA-256 of the rest) followed by
a `torch.save` of plain tensors and values. It is read with `weights_only=True`: no code in it is ever run.
"""

import hashlib
import io
import json
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

import torch
from torch import Tensor

from papi.config import Values
from papi.errors import UserError
from papi.files.durable import replacing

VERSION = 1
_MAGIC = "papi checkpoint"


class PickedEpoch(TypedDict):
    """The epoch that a rule likes best so far, and the method as it was then."""

    epoch: int
    value: float
    method: dict[str, Tensor]


class _Always(TypedDict):
    method: dict[str, Tensor]
    optimizer: Values
    epoch: int  # where it goes on
    step: int
    rows: list[Values]  # of the epochs before, as in metrics.jsonl
    tally: dict[str, Tensor]  # running sums of this epoch's row
    seconds: dict[str, float]


class State(_Always, total=False):
    """All that a run needs to go on: plain values and tensors."""

    scaler: Values  # of half precision
    picked: PickedEpoch | None


class DamagedCheckpointError(Exception):
    """The file is not a whole checkpoint of this run."""


class OtherVersionError(DamagedCheckpointError):
    """The file says that it has a format which this version does not read."""


def previous(path: Path) -> Path:
    """Where the checkpoint before the last one is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save(path: Path, state: State, config_hash: str) -> None:
    """Write beside, flush to disk, rename; the checkpoint before stays as the previous one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    header = {
        "format": _MAGIC,
        "version": VERSION,
        "config": config_hash,
        "length": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    with replacing(path, keep=previous(path)) as file:
        file.write(json.dumps(header).encode() + b"\n")
        file.write(content)


def load(path: Path, config_hash: str, device: torch.device) -> State:
    """The state in one file, or DamagedCheckpointError with the reason."""
    try:
        with path.open("rb") as file:
            first, content = file.readline(), file.read()
    except OSError as error:
        raise DamagedCheckpointError(f"{path.name} cannot be read ({error.strerror})") from error
    try:
        header = json.loads(first)
        if header["format"] != _MAGIC:
            raise DamagedCheckpointError(f"{path.name} is not a checkpoint")
        if header["version"] != VERSION:
            raise OtherVersionError(f"{path.name} has format version {header['version']}, and {VERSION} is read here")
        if len(content) != header["length"] or hashlib.sha256(content).hexdigest() != header["sha256"]:
            raise DamagedCheckpointError(f"{path.name} is incomplete or was altered")
        if header["config"] != config_hash:
            raise DamagedCheckpointError(f"{path.name} belongs to a run with other settings")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedCheckpointError(f"{path.name} has no readable header") from error
    try:
        state: State = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise DamagedCheckpointError(f"{path.name} holds something other than tensors and plain values") from error
    return state


def load_newest(path: Path, config_hash: str, device: torch.device) -> tuple[State | None, list[str]]:
    """The newest whole state, or None, and a sentence for each file that had to be passed over.

    Such a file is set aside under another name, so that the next save does not put it in the place of a good one.
    """
    state: State | None = None
    damaged: dict[Path, DamagedCheckpointError] = {}
    for file in (path, previous(path)):
        if state is None and file.exists():
            try:
                state = load(file, config_hash, device)
            except DamagedCheckpointError as damage:
                damaged[file] = damage
    others = [damage for damage in damaged.values() if isinstance(damage, OtherVersionError)]
    if state is None and others:
        raise UserError(f"{others[0]}. Continue the run with the PaPi that began it, or train in a new folder.")
    outcome = "training begins anew" if state is None else "the one before it is used"
    for file in damaged:
        with suppress(FileNotFoundError):  # another process of the same run was first
            os.replace(file, set_aside(file))
    return state, [f"{damage}: {outcome}, and {set_aside(file).name} keeps it." for file, damage in damaged.items()]


def set_aside(path: Path) -> Path:
    """Where a damaged file is kept for those who want to look at it."""
    return path.with_name(f"{path.stem}.damaged{path.suffix}")
