"""The folder of a run. Files are replaced atomically, by one process at a time, so none is ever incomplete."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from papi.config import RunConfig, Values
from papi.errors import UserError
from papi.files.durable import append, replacing
from papi.files.lock import Lock
from papi.files.npz import read_npz
from papi.files.reading import ROWS_BYTES, read_bytes, read_json, reason
from papi.runs.identity import differences
from papi.runs.schema import Arrays, EpochRow, Record, Rows, Sets, Summary

T = TypeVar("T")


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

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that training writes here, whether they exist or not. No other command may overwrite them."""
        before = self.path / "checkpoint.previous.pt"
        named = (self.config_file, self.metrics_file, self.summary_file, self.candidates_file, self.arrays_file)
        return (*named, self.checkpoint_file, before, self.model_file)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Lock the folder for this process: immediately, or in `create` if it does not exist yet.

        A finished run is only read, so it needs no lock.
        """
        try:
            if self.path.is_dir() and not self.summary_file.exists():
                self._claim()
            yield
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def create(self) -> None:
        """Create the folder and lock it. Raise `UserError` if that is not possible."""
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
        return UserError(f"the run folder {self.path} cannot be written ({error.strerror}): choose another with --out.")

    @contextmanager
    def writing(self, file: Path) -> Iterator[None]:
        """Wrap a write: a failed disk, or a folder that was deleted or taken over, raises `UserError`."""
        if self._lock is not None and not self._lock.is_mine():
            raise UserError(
                f"{self.path} was deleted or taken over by another process during training, so {file.name} was not "
                "written: start again, and use a folder for one process only."
            )
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{file} cannot be written ({error.strerror or error}): the last checkpoint is intact; run the same "
                "command to continue when the disk is writable again."
            ) from error

    def refuse_other_run(self, identity: Values) -> None:
        """Raise `UserError` if the folder belongs to a run with different settings, and list them."""
        record = self.read_record()
        if record is None:
            return
        found = differences(identity, record.identity)
        if found:
            listed = "; ".join(
                f"{name} is {_told(mine)} here and {_told(theirs)} there" for name, (mine, theirs) in found.items()
            )
            hint = (
                " (a longer run must start again, because schedules depend on its length)" if "epochs" in found else ""
            )
            raise UserError(
                f"{self.path} contains a run with other settings ({listed}): choose another folder with --out{hint}."
            )

    def write_record(self, record: Record) -> None:
        """Write the description of the run, before its first step."""
        self._write_json(self.config_file, record.to_json())

    def read_record(self) -> Record | None:
        """Read the description of the run; None in a folder without a run."""
        if not self.config_file.exists():
            return None
        return self._read_json(self.config_file, Record.from_json)

    def read_run_config(self) -> RunConfig:
        """Read the settings with which the run began."""
        record = self.begun()
        try:
            return record.run_config
        except ValueError as error:
            raise UserError(f"the settings in {self.config_file} are not valid: {error}.") from error

    def begun(self) -> Record:
        """Read the description of the run. Raise `UserError` if there is no run."""
        record = self.read_record()
        if record is None:
            raise UserError(f"{self.path} does not contain a run: specify a folder that `papi train` has written.")
        return record

    def write_rows(self, rows: list[EpochRow]) -> None:
        """Replace all rows when a run starts or resumes, so that none is missing or repeated."""
        self._write_bytes(self.metrics_file, "".join(json.dumps(row.to_json()) + "\n" for row in rows).encode())

    def append_row(self, row: EpochRow) -> None:
        """Append the row of an epoch. It is on disk when this returns."""
        with self.writing(self.metrics_file):
            append(self.metrics_file, (json.dumps(row.to_json()) + "\n").encode())

    def look_at_rows(self) -> Rows:
        """Read metrics.jsonl, intact or damaged."""
        if not self.metrics_file.exists():
            return Rows((), half=False)
        try:
            content = read_bytes(self.metrics_file, ROWS_BYTES, inside=self.path)
        except OSError as error:
            return Rows((), half=False, problem=reason(error))
        return Rows.from_text(content.decode("utf-8", errors="replace"))

    def read_rows(self) -> list[EpochRow]:
        """Read the rows so far, without an incomplete last line."""
        found = self.look_at_rows()
        if found.problem is not None:
            raise UserError(
                f"{self.metrics_file} is damaged ({found.problem}): if the run is unfinished, `papi train` with the "
                "same settings restores it from the checkpoint."
            )
        return list(found.rows)

    def write_summary(self, summary: Summary) -> None:
        """Write the result, which marks the run as finished."""
        self._write_json(self.summary_file, summary.to_json())

    def read_summary(self) -> Summary | None:
        """Read the summary of a finished run; None if it is unfinished."""
        return self._read_json(self.summary_file, Summary.from_json) if self.summary_file.exists() else None

    def write_arrays(self, arrays: Arrays) -> None:
        """Write the arrays of the finished run."""
        self._write_npz(self.arrays_file, arrays.to_arrays())

    def read_arrays(self) -> Arrays:
        """Read the arrays of the finished run."""
        return self._read_arrays(self.arrays_file, Arrays.from_arrays)

    def write_sets(self, sets: Sets) -> None:
        """Write the candidate sets of the run."""
        self._write_npz(self.candidates_file, sets.to_arrays())

    def read_sets(self) -> Sets:
        """Read the candidate sets of the run."""
        return self._read_arrays(self.candidates_file, Sets.from_arrays)

    def read_kept(self) -> tuple[Sets, Arrays]:
        """Read the candidate sets and the arrays of a finished run, and check that they match.

        Each file may be intact and still come from another run.
        """
        sets, arrays, classes = self.read_sets(), self.read_arrays(), len(self.begun().classes)
        if sets.candidates.shape[1] != classes:
            raise UserError(
                f"{self.config_file} has {classes} classes, but {self.candidates_file.name} has "
                f"{sets.candidates.shape[1]}, so they are from different runs: {self._doctor()}"
            )
        try:
            arrays.require_fitting(sets.candidates)
        except ValueError as error:
            raise UserError(
                f"{self.arrays_file} does not match {self.candidates_file.name} ({error}): {self._doctor()}"
            ) from error
        return sets, arrays

    def _read_json(self, file: Path, read: Callable[[object], T]) -> T:
        try:
            return read(read_json(file, inside=self.path))
        except (OSError, ValueError) as error:
            raise UserError(f"{file} is damaged ({reason(error)}): {self._doctor()}") from error

    def _read_arrays(self, file: Path, read: Callable[[dict[str, np.ndarray]], T]) -> T:
        try:
            return read(read_npz(file, inside=self.path))
        except (OSError, ValueError) as error:
            raise UserError(f"{file} cannot be read ({reason(error)}): {self._doctor()}") from error

    def _doctor(self) -> str:
        return f"run `papi doctor {shlex.quote(str(self.path))}` to see how to repair it."

    def _write_npz(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        with self.writing(file), replacing(file) as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]

    def _write_json(self, file: Path, values: Values) -> None:
        self._write_bytes(file, (json.dumps(values, indent=2) + "\n").encode())

    def _write_bytes(self, file: Path, content: bytes) -> None:
        with self.writing(file), replacing(file) as stream:
            stream.write(content)


def _told(value: object) -> str:
    """Return the value of a setting for a message."""
    return "not set" if value is None else str(value)
