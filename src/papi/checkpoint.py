"""Saving a run so that a kill at any moment costs at most the steps since the last save.

A checkpoint is one line of JSON (format version, hash of the run's config, length and SHA-256 of the rest) followed by
a `torch.save` of plain tensors and values. It is read with `weights_only=True`: no code in it is ever run.
"""

import hashlib
import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import torch

VERSION = 1
_MAGIC = "papi checkpoint"


class DamagedCheckpointError(Exception):
    """The file is not a whole checkpoint of this run."""


def previous(path: Path) -> Path:
    """Where the checkpoint before the last one is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save(path: Path, state: dict[str, Any], config_hash: str) -> None:
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
    temporary = path.with_name(f".{path.name}.writing")
    with temporary.open("wb") as file:
        file.write(json.dumps(header).encode() + b"\n")
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        os.replace(path, previous(path))
    os.replace(temporary, path)


def load(path: Path, config_hash: str, device: torch.device) -> dict[str, Any]:
    """The state in one file, or DamagedCheckpointError with the reason."""
    with path.open("rb") as file:
        first, content = file.readline(), file.read()
    try:
        header = json.loads(first)
        if header["format"] != _MAGIC or header["version"] != VERSION:
            raise DamagedCheckpointError(f"{path.name} is not a checkpoint of format version {VERSION}")
        if len(content) != header["length"] or hashlib.sha256(content).hexdigest() != header["sha256"]:
            raise DamagedCheckpointError(f"{path.name} is incomplete or was altered")
        if header["config"] != config_hash:
            raise DamagedCheckpointError(f"{path.name} belongs to a run with other settings")
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedCheckpointError(f"{path.name} has no readable header") from error
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise DamagedCheckpointError(f"{path.name} holds something other than tensors and plain values") from error
    return state


def load_newest(path: Path, config_hash: str, device: torch.device) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest whole state, or None, and a sentence for each file that had to be passed over."""
    problems: list[str] = []
    for file in (path, previous(path)):
        if file.exists():
            try:
                return load(file, config_hash, device), problems
            except DamagedCheckpointError as damage:
                problems.append(f"{damage}: trying the one before it.")
    return None, problems
