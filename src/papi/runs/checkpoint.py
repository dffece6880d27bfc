"""Saves and loads checkpoints, so that a kill at any moment loses at most the steps since the last one.

A checkpoint is one line of JSON (format version, hash of the run's config, length and SHA-256 of the rest) followed by
a `torch.save` of plain tensors and values. It is read with `weights_only=True`, so it cannot run code.
"""

import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypedDict

import torch
from torch import Tensor

from papi.config import Values
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.reading import memory_bytes, opened, parse_json, reason
from papi.runs.schema import EpochRow

VERSION = 1
_MAGIC = "papi checkpoint"
_HEADER_BYTES = 4096


class PickedEpoch(TypedDict):
    """The best epoch so far by a criterion, and the state of the method at that epoch."""

    epoch: int
    value: float
    method: dict[str, Tensor]


class _Always(TypedDict):
    method: dict[str, Tensor]
    optimizer: Values
    epoch: int  # where to resume
    step: int
    rows: list[Values]  # of the epochs before, as in metrics.jsonl
    tally: dict[str, Tensor]  # running sums of this epoch's row
    seconds: dict[str, float]


class State(_Always, total=False):
    """Everything that a run needs to resume: plain values and tensors."""

    scaler: Values  # of half precision
    picked: PickedEpoch | None


Fitted = Callable[[State], State]
"""Returns a state that matches the run. Raises ValueError if it does not."""


class DamagedCheckpointError(Exception):
    """The file is not an intact checkpoint of this run."""


class OtherVersionError(DamagedCheckpointError):
    """The file has a format version that cannot be read."""


def previous(path: Path) -> Path:
    """Return the path of the previous checkpoint."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save(path: Path, state: State, config_hash: str) -> None:
    """Write a checkpoint atomically and keep the last one as the previous checkpoint."""
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


def _as_it_is(state: State) -> State:
    return state


def load(path: Path, config_hash: str, device: torch.device, fitted: Fitted = _as_it_is) -> State:
    """Return the state in a file. Raise DamagedCheckpointError with the reason if it cannot be used.

    A checksum detects damage but does not prove who wrote the file, so every value is checked. `fitted` compares the
    state with the run that resumes from it.
    """
    try:
        with opened(path, memory_bytes(), inside=path.parent) as file:
            content = _content(file, path.name, config_hash)
    except OSError as error:
        raise DamagedCheckpointError(f"{path.name} cannot be read ({reason(error)})") from error
    try:
        found: object = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except Exception as error:  # other files can fail anywhere in the archive, the pickle or its tensors
        raise DamagedCheckpointError(f"{path.name} contains something other than tensors and plain values") from error
    try:
        return fitted(_state(found))
    except ValueError as error:
        raise DamagedCheckpointError(f"{path.name} is not a checkpoint of this run ({reason(error)})") from error


def _content(file: BinaryIO, name: str, config_hash: str) -> bytes:
    """Return the bytes after the header, whose length is checked before they are read."""
    first = file.readline(_HEADER_BYTES)
    try:
        header = parse_json(first.decode())
    except ValueError as error:
        raise DamagedCheckpointError(f"{name} has no readable header") from error
    if not isinstance(header, dict) or header.get("format") != _MAGIC:
        raise DamagedCheckpointError(f"{name} is not a checkpoint")
    version = header.get("version")
    if isinstance(version, int) and version != VERSION:
        raise OtherVersionError(f"{name} has format version {version}, but this version of PaPi reads {VERSION}")
    length = file.seek(0, os.SEEK_END) - len(first)
    file.seek(len(first))
    content = file.read() if (version, header.get("length")) == (VERSION, length) else b""
    if header.get("sha256") != hashlib.sha256(content).hexdigest():
        raise DamagedCheckpointError(f"{name} is incomplete or was altered")
    if header.get("config") != config_hash:
        raise DamagedCheckpointError(f"{name} belongs to a run with other settings")
    return content


def _state(found: object) -> State:
    """Return the loaded object as a state after checking the type of every part."""
    match found:
        case {
            "method": dict(method),
            "optimizer": dict(optimizer),
            "epoch": int(epoch),
            "step": int(step),
            "rows": list(rows),
            "tally": dict(tally),
            "seconds": dict(seconds),
            **others,
        } if epoch >= 0 and step >= 0:
            state = State(
                method=_tensors(method),
                optimizer=optimizer,
                epoch=epoch,
                step=step,
                rows=[EpochRow.from_json(row).to_json() for row in rows],
                tally=_tensors(tally),
                seconds={name: _number(value) for name, value in _values(seconds).items()},
            )
        case _:
            raise ValueError("parts are missing or have the wrong type")
    if len(rows) != epoch or [row["epoch"] for row in state["rows"]] != list(range(epoch)):
        raise ValueError(f"it has {len(rows)} rows for {epoch} epochs")
    if "scaler" in others:
        state["scaler"] = _values(others["scaler"])
    if "picked" in others:
        state["picked"] = None if others["picked"] is None else _picked(_values(others["picked"]), epoch)
    return state


def _picked(found: Values, epochs: int) -> PickedEpoch:
    epoch, value = found.get("epoch"), _number(found.get("value"))
    if not isinstance(epoch, int) or not 0 <= epoch < epochs:
        raise ValueError("its selected epoch is not one of its epochs")
    return {"epoch": epoch, "value": value, "method": _tensors(_values(found.get("method")))}


def _tensors(found: Mapping[str, object]) -> dict[str, Tensor]:
    tensors = {name: value for name, value in found.items() if isinstance(name, str) and isinstance(value, Tensor)}
    if len(tensors) != len(found):
        raise ValueError("a tensor has the wrong type")
    return tensors


def _values(found: object) -> Values:
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError("a dict has the wrong type")
    return found


def _number(found: object) -> float:
    if isinstance(found, bool) or not isinstance(found, float | int) or not abs(found) <= sys.float_info.max:
        raise ValueError("a number has the wrong type or is not finite")
    return found


def load_newest(
    path: Path, config_hash: str, device: torch.device, fitted: Fitted = _as_it_is
) -> tuple[State | None, list[str]]:
    """Return the newest intact state, or None, and a message for each damaged file.

    Damaged files are renamed, so that the next save does not keep one of them as the previous checkpoint.
    """
    state: State | None = None
    damaged: dict[Path, DamagedCheckpointError] = {}
    for file in (path, previous(path)):
        if state is None and file.exists():
            try:
                state = load(file, config_hash, device, fitted)
            except DamagedCheckpointError as damage:
                damaged[file] = damage
    others = [damage for damage in damaged.values() if isinstance(damage, OtherVersionError)]
    if state is None and others:
        raise UserError(f"{others[0]}: continue the run with the version that began it, or train in a new folder.")
    outcome = "training starts from the beginning" if state is None else "the previous checkpoint is used"
    for file in damaged:
        with suppress(FileNotFoundError):  # another process of the same run was first
            os.replace(file, set_aside(file))
    return state, [
        f"{damage}: {outcome}; it was renamed to {set_aside(file).name}." for file, damage in damaged.items()
    ]


def set_aside(path: Path) -> Path:
    """Return the path to which a damaged file is renamed."""
    return path.with_name(f"{path.stem}.damaged{path.suffix}")
