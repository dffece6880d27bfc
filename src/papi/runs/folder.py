"""The folder of a run. Files are replaced as a whole, by one process at a time, so none is ever seen half."""

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
        """All files that training writes here, present or not. No other command may write over them."""
        before = self.path / "checkpoint.previous.pt"
        named = (self.config_file, self.metrics_file, self.summary_file, self.candidates_file, self.arrays_file)
        return (*named, self.checkpoint_file, before, self.model_file)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Train here, alone: the folder is locked from now on, or from `create` on if it does not exist yet.

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

    def refuse_other_run(self, identity: Values) -> None:
        """Stop if the folder belongs to a run with other settings, and say which."""
        record = self.read_record()
        if record is None:
            return
        found = differences(identity, record.identity)
        if found:
            listed = "; ".join(f"{name} is {mine} here and {theirs} there" for name, (mine, theirs) in found.items())
            hint = "; a longer run starts anew, because schedules depend on the length" if "epochs" in found else ""
            raise UserError(f"{self.path} holds another run: {listed}. Choose another folder with --out{hint}.")

    def write_record(self, record: Record) -> None:
        """What the run is, before its first step."""
        self._write_json(self.config_file, record.to_json())

    def read_record(self) -> Record | None:
        """What `write_record` wrote, or None in a folder without a run."""
        if not self.config_file.exists():
            return None
        return self._read_json(self.config_file, Record.from_json)

    def read_run_config(self) -> RunConfig:
        """The settings of the run, as they were when it began."""
        record = self.begun()
        try:
            return record.run_config
        except ValueError as error:
            raise UserError(f"the settings in {self.config_file} cannot be used: {error}.") from error

    def begun(self) -> Record:
        """What the run is, for those who need one."""
        record = self.read_record()
        if record is None:
            raise UserError(f"{self.path} holds no run: give a folder that `papi train` has written.")
        return record

    def write_rows(self, rows: list[EpochRow]) -> None:
        """Replace all rows: what a run does when it starts or goes on, so that none is lost or doubled."""
        self._write_bytes(self.metrics_file, "".join(json.dumps(row.to_json()) + "\n" for row in rows).encode())

    def append_row(self, row: EpochRow) -> None:
        """Add the row of an epoch, on disk when this returns."""
        with self.writing(self.metrics_file):
            append(self.metrics_file, (json.dumps(row.to_json()) + "\n").encode())

    def look_at_rows(self) -> Rows:
        """metrics.jsonl as it is, whole or damaged."""
        if not self.metrics_file.exists():
            return Rows((), half=False)
        try:
            content = read_bytes(self.metrics_file, ROWS_BYTES, inside=self.path)
        except OSError as error:
            return Rows((), half=False, problem=reason(error))
        return Rows.from_text(content.decode("utf-8", errors="replace"))

    def read_rows(self) -> list[EpochRow]:
        """The rows so far; a last line that is still being written is left out."""
        found = self.look_at_rows()
        if found.problem is not None:
            raise UserError(
                f"{self.metrics_file} is damaged ({found.problem}). `papi train` with the same settings writes it anew "
                "from the checkpoint, unless the run has finished."
            )
        return list(found.rows)

    def write_summary(self, summary: Summary) -> None:
        """The result: from now on the run is finished."""
        self._write_json(self.summary_file, summary.to_json())

    def read_summary(self) -> Summary | None:
        """The summary of a finished run, else None."""
        return self._read_json(self.summary_file, Summary.from_json) if self.summary_file.exists() else None

    def write_arrays(self, arrays: Arrays) -> None:
        """What the finished run keeps for labels and pictures."""
        self._write_npz(self.arrays_file, arrays.to_arrays())

    def read_arrays(self) -> Arrays:
        """What `write_arrays` wrote."""
        return self._read_arrays(self.arrays_file, Arrays.from_arrays)

    def write_sets(self, sets: Sets) -> None:
        """The candidate sets that are trained on."""
        self._write_npz(self.candidates_file, sets.to_arrays())

    def read_sets(self) -> Sets:
        """What `write_sets` wrote."""
        return self._read_arrays(self.candidates_file, Sets.from_arrays)

    def read_kept(self) -> tuple[Sets, Arrays]:
        """The candidate sets and the arrays of a finished run, which belong together and to the classes of its record.

        Each file may be whole and yet come from another run.
        """
        sets, arrays, classes = self.read_sets(), self.read_arrays(), len(self.begun().classes)
        if sets.candidates.shape[1] != classes:
            raise UserError(
                f"{self.config_file} names {classes} classes, and {self.candidates_file.name} has sets of "
                f"{sets.candidates.shape[1]}: they are not of the same run. {self._doctor()}"
            )
        try:
            arrays.require_fitting(sets.candidates)
        except ValueError as error:
            raise UserError(
                f"{self.arrays_file} does not belong to {self.candidates_file.name} ({error}). {self._doctor()}"
            ) from error
        return sets, arrays

    def _read_json(self, file: Path, read: Callable[[object], T]) -> T:
        try:
            return read(read_json(file, inside=self.path))
        except (OSError, ValueError) as error:
            raise UserError(f"{file} is damaged ({reason(error)}). {self._doctor()}") from error

    def _read_arrays(self, file: Path, read: Callable[[dict[str, np.ndarray]], T]) -> T:
        try:
            return read(read_npz(file, inside=self.path))
        except (OSError, ValueError) as error:
            raise UserError(f"{file} cannot be read ({reason(error)}). {self._doctor()}") from error

    def _doctor(self) -> str:
        return f"`papi doctor {shlex.quote(str(self.path))}` says what can be done."

    def _write_npz(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        with self.writing(file), replacing(file) as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]

    def _write_json(self, file: Path, values: Values) -> None:
        self._write_bytes(file, (json.dumps(values, indent=2) + "\n").encode())

    def _write_bytes(self, file: Path, content: bytes) -> None:
        with self.writing(file), replacing(file) as stream:
            stream.write(content)
