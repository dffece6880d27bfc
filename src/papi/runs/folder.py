"""The format of a run on disk. Files are replaced as a whole, by one process at a time, so none is ever seen half."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from papi.config import NO_EFFECT, differences
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.lock import Lock
from papi.files.npz import read_npz

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
        self._lock: Lock | None = None

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Train here, alone: the folder is locked from now on, or from `create` on if it does not exist yet.

        A finished run is only read, so it needs no lock. Within `owned`, it may be entered once more.
        """
        if self._lock is not None:
            yield
            return
        try:
            if self.path.is_dir() and not self.summary_file.exists():
                self._claim()
            yield
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def create(self) -> None:
        """Make the folder and lock it, or say clearly why that cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        self._claim()

    def _claim(self) -> None:
        try:
            self._lock = self._lock or Lock(self.path)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"the run folder {self.path} cannot be written ({error.strerror}). Choose another with --out.")

    @contextmanager
    def writing(self, file: Path) -> Iterator[None]:
        """Around every write: a disk that fails, or a folder that is gone or another's, ends the run in a sentence."""
        if self._lock is not None and not self._lock.is_mine():
            raise UserError(
                f"{self.path} was deleted or taken by another process while this one trained in it: {file.name} was "
                "not written. Start again, and let one process alone work in a folder."
            )
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{file} cannot be written ({error.strerror or error}). What was saved before is whole: when the disk "
                "takes files again, the same command goes on from there."
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
        self._write_json(self.config_file, record)

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
        self._write_bytes(self.metrics_file, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def append_row(self, row: Row) -> None:
        with self.writing(self.metrics_file), self.metrics_file.open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read_rows(self) -> list[Row]:
        """The rows so far; a last line that is still being written is left out."""
        if not self.metrics_file.exists():
            return []
        lines = self.metrics_file.read_text(errors="replace").split("\n")
        try:
            return [json.loads(line) for line in lines[:-1]]
        except ValueError as error:
            raise UserError(
                f"{self.metrics_file} is damaged ({error}). `papi train` with the same settings writes it anew from "
                "the checkpoint, unless the run has finished."
            ) from error

    def write_summary(self, summary: dict[str, Any]) -> None:
        self._write_json(self.summary_file, summary)

    def read_summary(self) -> dict[str, Any] | None:
        """The summary of a finished run, else None."""
        return _read_json(self.summary_file) if self.summary_file.exists() else None

    def write_arrays(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        with self.writing(file), replacing(file) as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]

    def read_arrays(self, file: Path) -> dict[str, np.ndarray]:
        try:
            return read_npz(file)
        except (OSError, ValueError) as error:
            raise UserError(
                f"{file} cannot be read ({error}). `papi doctor {file.parent}` says what can be done."
            ) from error

    def _write_json(self, file: Path, values: dict[str, Any]) -> None:
        self._write_bytes(file, (json.dumps(values, indent=2) + "\n").encode())

    def _write_bytes(self, file: Path, content: bytes) -> None:
        with self.writing(file), replacing(file) as stream:
            stream.write(content)


def identity_hash(identity: dict[str, Any]) -> str:
    """A short name for all that decides a run's result: what checkpoints are tied to."""
    deciding = {name: value for name, value in identity.items() if name not in NO_EFFECT}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is damaged ({error}). `papi doctor {file.parent}` says what can be done.") from error
    if not isinstance(values, dict):
        raise UserError(f"{file} is damaged (no JSON object). `papi doctor {file.parent}` says what can be done.")
    return values
