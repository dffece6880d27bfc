"""The format of a run on disk. Files are written beside and renamed, so a reader never sees half of one."""

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from papi.config import NO_EFFECT, differences
from papi.errors import UserError

Row = dict[str, Any]


class RunFolder:
    """A folder with config.json, metrics.jsonl, summary.json, candidates.npz, arrays.npz, checkpoints and the model."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.metrics_file = self.path / "metrics.jsonl"
        self.summary_file = self.path / "summary.json"
        self.candidates_file = self.path / "candidates.npz"
        self.arrays_file = self.path / "arrays.npz"
        self.checkpoint_file = self.path / "checkpoint.pt"
        self.model_file = self.path / "model.safetensors"

    def create(self) -> None:
        """Make the folder, or say clearly why that cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UserError(
                f"the run folder {self.path} cannot be written ({error.strerror}). Choose another with --out."
            ) from error

    def refuse_other_run(self, identity: dict[str, Any]) -> None:
        """Stop if the folder belongs to a run with other settings, and say which."""
        record = self.read_config()
        if record is None:
            return
        found = differences(identity, record["identity"])
        if found:
            listed = "; ".join(f"{name} is {mine} here and {theirs} there" for name, (mine, theirs) in found.items())
            hint = "; a longer run starts anew, because schedules depend on the length" if "epochs" in found else ""
            raise UserError(f"{self.path} holds another run: {listed}. Choose another folder with --out{hint}.")

    def write_config(self, record: dict[str, Any]) -> None:
        _write_json(self.config_file, record)

    def read_config(self) -> dict[str, Any] | None:
        """What `write_config` wrote, or None in a folder without a run."""
        if not self.config_file.exists():
            return None
        record = _read_json(self.config_file)
        if not isinstance(record.get("identity"), dict):
            raise UserError(f"{self.config_file} is damaged (no settings in it). Train in a new folder with --out.")
        return record

    def write_rows(self, rows: list[Row]) -> None:
        """Replace all rows: what a run does when it starts or goes on, so that none is lost or doubled."""
        _write_bytes(self.metrics_file, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def append_row(self, row: Row) -> None:
        with self.metrics_file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def read_rows(self) -> list[Row]:
        """The rows so far; a last line that is still being written is left out."""
        if not self.metrics_file.exists():
            return []
        lines = self.metrics_file.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def write_summary(self, summary: dict[str, Any]) -> None:
        _write_json(self.summary_file, summary)

    def read_summary(self) -> dict[str, Any] | None:
        """The summary of a finished run, else None."""
        return _read_json(self.summary_file) if self.summary_file.exists() else None

    def write_arrays(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        temporary = _beside(file)
        with temporary.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, file)

    def read_arrays(self, file: Path) -> dict[str, np.ndarray]:
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"{file} cannot be read ({error}). Train the run again in a new folder.") from error


def identity_hash(identity: dict[str, Any]) -> str:
    """A short name for all that decides a run's result: what checkpoints are tied to."""
    deciding = {name: value for name, value in identity.items() if name not in NO_EFFECT}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.writing")


def _write_bytes(file: Path, content: bytes) -> None:
    temporary = _beside(file)
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, file)


def _write_json(file: Path, values: dict[str, Any]) -> None:
    _write_bytes(file, (json.dumps(values, indent=2) + "\n").encode())


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is damaged ({error}). Train the run again in a new folder with --out.") from error
    if not isinstance(values, dict):
        raise UserError(f"{file} is damaged (no JSON object). Train the run again in a new folder with --out.")
    return values
