"""A run folder as it is: whatever can be read is, and whatever cannot is said in a sentence."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open

from papi.config import from_dict
from papi.data.dataset import Dataset
from papi.data.digest import same_data
from papi.data.known.sources import SOURCES
from papi.errors import UserError
from papi.files.npz import read_npz
from papi.runs.folder import Row, RunFolder, identity_hash
from papi.runs.labels import Resolved, candidate_shares, resolve
from papi.setup.data import load_dataset

T = TypeVar("T")


@dataclass
class Run:
    """What is known of a run. Parts that are absent are None or empty, and `problems` says why."""

    path: Path
    record: dict[str, Any] = field(default_factory=dict)  # config.json
    rows: list[Row] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    candidates: np.ndarray | None = None  # (N, K) bool
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    dataset: Dataset | None = None  # as trained on; None where the data are gone
    class_names: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def config(self) -> dict[str, Any]:
        found = self.record.get("config")
        return found if isinstance(found, dict) else {}

    @property
    def identity(self) -> str:
        """What progress in the browser is kept under: the same for the same run, wherever its folder lies."""
        return identity_hash(self.record.get("identity") or {"path": str(self.path.resolve())})

    @property
    def method(self) -> str:
        return str(self.config.get("method") or (self.summary or {}).get("method") or "unknown method")

    @property
    def data_name(self) -> str:
        """The dataset without the folder it lies in."""
        found = str((self.summary or {}).get("dataset") or self.config.get("data") or "unknown data")
        return found.replace("\\", "/").rstrip("/").rpartition("/")[2]

    @property
    def finished(self) -> bool:
        return self.summary is not None

    @property
    def labels(self) -> np.ndarray | None:
        """True labels of the training images, where they are known."""
        return None if self.dataset is None else self.dataset.labels

    @property
    def test_labels(self) -> np.ndarray | None:
        return None if self.dataset is None else self.dataset.test_labels

    @cached_property
    def shares(self) -> np.ndarray | None:
        """Final confidence within each candidate set, `(N, K)`."""
        if self.candidates is None or "confidence" not in self.arrays:
            return None
        return candidate_shares(self.candidates, self.arrays["confidence"])

    @cached_property
    def resolved(self) -> Resolved | None:
        if self.candidates is None or "confidence" not in self.arrays:
            return None
        opinion = self.arrays.get("second_opinion")
        fits = opinion is not None and opinion.shape == (len(self.candidates),)
        return resolve(self.candidates, self.arrays["confidence"], opinion if fits else None)

    def last(self, key: str) -> float | None:
        """The value of the last epoch that has one."""
        found = [row[key] for row in self.rows if is_number(row.get(key))]
        return float(found[-1]) if found else None

    def class_name(self, k: int) -> str:
        return self.class_names[k] if 0 <= k < len(self.class_names) else f"class {k}"


def is_number(value: Any) -> TypeGuard[float]:
    """A finite number, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def read_run(path: Path, data_dir: Path | None = None) -> Run:
    """Everything a folder holds. Only a folder in which there is no trace of a run is refused."""
    folder = RunFolder(path)
    traces = (folder.config_file, folder.metrics_file, folder.summary_file, folder.arrays_file)
    if not any(file.exists() for file in traces):
        raise UserError(f"{path} holds no run: give a folder that `papi train` has written.")
    run = Run(Path(path))
    run.record = _read_record(folder, run.problems)
    run.rows = _read_rows(folder, run.problems)
    run.summary = _attempt(folder.read_summary, run.problems)
    run.candidates = _read_candidates(folder, run.problems)
    run.arrays = _read_arrays(folder, run)
    _read_dataset(run, data_dir)
    run.class_names = _class_names(run, folder)
    _check_test(run)
    if run.summary is None:
        planned = run.config.get("epochs")
        run.problems.insert(0, f"This run has not finished: {len(run.rows)} of {planned or '?'} epochs are done.")
    return run


def _attempt(read: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return read()
    except UserError as error:
        problems.append(_sentence(error))
        return None


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    names_a_file = "." in text.partition(" ")[0]
    return text if names_a_file else text[:1].upper() + text[1:]


def _read_record(folder: RunFolder, problems: list[str]) -> dict[str, Any]:
    record = _attempt(folder.read_config, problems)
    if record is None and not folder.config_file.exists():
        problems.append("config.json is missing, so the settings of this run are not known.")
    return record or {}


def _read_rows(folder: RunFolder, problems: list[str]) -> list[Row]:
    """All rows that are whole. `RunFolder.read_rows` trusts its own writing; here a broken line costs itself only."""
    if not folder.metrics_file.exists():
        problems.append("metrics.jsonl is missing, so there are no learning curves.")
        return []
    rows, broken = [], 0
    for line in folder.metrics_file.read_text(errors="replace").split("\n"):
        try:
            row = json.loads(line) if line else None
        except ValueError:
            row, broken = None, broken + 1
        if isinstance(row, dict) and is_number(row.get("epoch")):
            rows.append(row)
    if broken:
        lines = "one line" if broken == 1 else f"{broken} lines"
        problems.append(f"metrics.jsonl has {lines} that cannot be read; the curves leave them out.")
    return rows


def _read_candidates(folder: RunFolder, problems: list[str]) -> np.ndarray | None:
    if not folder.candidates_file.exists():
        problems.append(f"candidates.npz is missing, so the candidate sets cannot be shown: {_doctor(folder)}.")
        return None
    arrays = _attempt(lambda: _load(folder, folder.candidates_file), problems) or {}
    found = arrays.get("candidates")
    if found is None or found.ndim != 2 or not len(found):
        problems.append("candidates.npz has no table of candidate sets, so they cannot be shown.")
        return None
    return found.astype(bool)


def _read_arrays(folder: RunFolder, run: Run) -> dict[str, np.ndarray]:
    """What the run kept for pictures, without parts whose shape cannot be right."""
    if not folder.arrays_file.exists():
        why, cure = ("is missing", f": {_doctor(folder)}") if run.summary else ("is written when a run ends", "")
        lost = "labels, confusions and the map of images cannot be shown yet"
        run.problems.append(f"arrays.npz {why}, so {lost}{cure}.")
        return {}
    arrays = _attempt(lambda: _load(folder, folder.arrays_file), run.problems) or {}
    confidence = arrays.get("confidence")
    if confidence is not None and run.candidates is not None and confidence.shape != run.candidates.shape:
        run.problems.append(
            f"The confidence in arrays.npz is {confidence.shape} and the candidate sets are {run.candidates.shape}: "
            "they do not belong together, so resolved labels are left out."
        )
        arrays.pop("confidence")
    return arrays


def _load(folder: RunFolder, file: Path) -> dict[str, np.ndarray]:
    try:
        return read_npz(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file.name} cannot be read ({error}): {_doctor(folder)}.") from error


def _doctor(folder: RunFolder) -> str:
    return f"`papi doctor {shlex.quote(str(folder.path))}` says how to make it anew"


def _read_dataset(run: Run, data_dir: Path | None) -> None:
    """The images the run was trained on, if they are still where they were and still the same in number."""
    config = run.config
    if "data" not in config:
        return
    try:
        settings = from_dict(config if data_dir is None else config | {"data_dir": str(data_dir)})
        dataset = load_dataset(settings).limited(settings.limit)
    except (OSError, ValueError, TypeError, AttributeError) as error:  # a UserError is a ValueError
        run.problems.append(
            f"The data are not at hand, so there are no pictures and no true labels: {_sentence(error).rstrip('.')}. "
            f"Make the report in the folder where the run was trained, or {_other_way(config['data'])}."
        )
        return
    if run.candidates is not None and not _belong_together(run.candidates, dataset, "parent" in run.record):
        run.problems.append(
            f"{config['data']} has changed since the run: it has {len(dataset.samples)} images of "
            f"{len(dataset.class_names)} classes with their candidates, and the run was trained on "
            f"{len(run.candidates)} of {run.candidates.shape[1]} with its own. "
            "So there are no pictures and no true labels."
        )
        return
    if run.candidates is not None and not same_data(run.record, dataset, run.candidates):
        run.problems.append(
            f"{config['data']} may have changed since the run: its images or labels are not those that it was trained "
            "on. What is shown here are those of now."
        )
    run.dataset = dataset


def _other_way(data: Any) -> str:
    """How else to bring the data of a run to hand."""
    return (
        "name the folder of the dataset with --data-dir"
        if str(data) in SOURCES
        else "put the data back where they were"
    )


def _belong_together(candidates: np.ndarray, dataset: Dataset, decided: bool) -> bool:
    """Whether the sets are those of the data; where a person has `decided`, sets may have become single labels."""
    if candidates.shape != (len(dataset.samples), len(dataset.class_names)):
        return False
    if dataset.candidates is None:
        return True
    differ = (candidates != dataset.candidates).any(1)
    return bool((candidates[differ].sum(1) == 1).all()) if decided else not differ.any()


def _class_names(run: Run, folder: RunFolder) -> tuple[str, ...]:
    """From the data, else from the model; else numbers."""
    if run.dataset is not None:
        return run.dataset.class_names
    classes = 0 if run.candidates is None else run.candidates.shape[1]
    try:
        with safe_open(folder.model_file, "numpy") as opened:  # type: ignore[no-untyped-call]
            names = json.loads((opened.metadata() or {})["papi"])["class_names"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        names = []
    if names and (not classes or len(names) == classes):
        return tuple(str(name) for name in names)
    if classes:
        run.problems.append("The names of the classes are not at hand: they are numbered.")
    return tuple(f"class {k}" for k in range(classes))


def _check_test(run: Run) -> None:
    """Leave out test results that do not fit the test images."""
    probabilities, labels = run.arrays.get("test_probabilities"), run.test_labels
    if probabilities is None or labels is None:
        return
    if probabilities.ndim != 2 or probabilities.shape != (len(labels), len(run.class_names)):
        run.arrays.pop("test_probabilities")
        run.problems.append("The test results do not fit the test images: confusions and calibration are left out.")
