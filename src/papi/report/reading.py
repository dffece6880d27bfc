"""Reads a run folder for the report. Parts that cannot be read are skipped and reported."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open

from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.digest import same_data
from papi.data.known.sources import SOURCES
from papi.data.packed_rows import parts_of
from papi.errors import UserError
from papi.files.reading import memory_bytes, parse_json, plain_file
from papi.report.fitting import fit
from papi.report.run import Run
from papi.runs.folder import RunFolder
from papi.runs.samples import trained_on
from papi.runs.schema import Arrays, EpochRow, Record, Sets
from papi.setup.data import load_dataset

T = TypeVar("T")


def read_run(path: Path, data_dir: Path | None = None) -> Run:
    """Read everything in a run folder. Raise `UserError` only if the folder contains no run."""
    folder = RunFolder(path)
    traces = (folder.config_file, folder.metrics_file, folder.summary_file, folder.arrays_file)
    if not any(file.exists() for file in traces):
        raise UserError(f"{path} does not contain a run: specify a folder that `papi train` has written.")
    run = Run(Path(path), finished=folder.summary_file.exists())
    run.record = _read_record(folder, run.problems)
    run.config = _config(run.record, run.problems)
    run.rows = _read_rows(folder, run.problems)
    run.summary = _attempt(folder.read_summary, run.problems)
    sets = _read_sets(folder, run.problems)
    run.candidates = None if sets is None else sets.candidates
    arrays = _read_arrays(folder, run)
    run.dataset = _read_dataset(run, sets, data_dir)
    run.class_names = _class_names(run, folder, arrays)
    if arrays is not None:
        tests = None if run.test_labels is None else len(run.test_labels)
        run.kept, unfit = fit(arrays, run.candidates, len(run.class_names), tests)
        run.problems += unfit
    if not run.finished:
        run.problems.insert(0, f"This run is unfinished: {len(run.rows)} of {run.epochs or '?'} epochs are done.")
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


def _read_record(folder: RunFolder, problems: list[str]) -> Record | None:
    if not folder.config_file.exists():
        problems.append("config.json is missing, so the settings of this run are unknown.")
        return None
    return _attempt(folder.read_record, problems)


def _config(record: Record | None, problems: list[str]) -> RunConfig | None:
    """Return the settings, if this version of PaPi supports all of them."""
    if record is None:
        return None
    try:
        return record.run_config
    except ValueError as error:
        problems.append(
            f"The settings in config.json are not valid ({str(error).rstrip('.')}), so the data cannot be loaded: "
            "pictures and true labels are not shown."
        )
        return None


def _read_rows(folder: RunFolder, problems: list[str]) -> tuple[EpochRow, ...]:
    """Return the rows before the first damaged one."""
    if not folder.metrics_file.exists():
        problems.append("metrics.jsonl is missing, so there are no learning curves.")
        return ()
    found = folder.look_at_rows()
    if found.problem is not None:
        problems.append(f"metrics.jsonl is damaged ({found.problem}), so the curves end before that point.")
    elif found.half:
        problems.append("metrics.jsonl ends in the middle of a line, which is ignored.")
    return found.rows


def _read_sets(folder: RunFolder, problems: list[str]) -> Sets | None:
    if not folder.candidates_file.exists():
        problems.append(f"candidates.npz is missing, so the candidate sets cannot be shown. {_doctor(folder)}")
        return None
    return _attempt(folder.read_sets, problems)


def _read_arrays(folder: RunFolder, run: Run) -> Arrays | None:
    if folder.arrays_file.exists():
        return _attempt(folder.read_arrays, run.problems)
    lost = "so labels, confusions and the map of images cannot be shown"
    if run.finished:
        run.problems.append(f"arrays.npz is missing, {lost}. {_doctor(folder)}")
    else:
        run.problems.append(f"arrays.npz is written when a run ends, {lost} yet.")
    return None


def _doctor(folder: RunFolder) -> str:
    return f"Run `papi doctor {shlex.quote(str(folder.path))}` to see how to repair it."


def _read_dataset(run: Run, sets: Sets | None, data_dir: Path | None) -> Dataset | None:
    """Return the images that the run was trained on, if they still exist and have not changed."""
    if run.config is None:
        return None
    config = run.config if data_dir is None else replace(run.config, data_dir=data_dir)
    try:
        preparation = None if run.record is None else run.record.preparation
        dataset = load_dataset(config, preparation=preparation).limited(config.limit)
    except (OSError, ValueError) as error:  # a UserError is a ValueError
        run.problems.append(
            f"The data cannot be loaded, so pictures and true labels are not shown: {_sentence(error).rstrip('.')}. "
            f"Run `papi report` in the folder where the run was trained, or {_other_way(config.data)}."
        )
        return None
    if run.record is None or run.candidates is None or sets is None:
        return dataset
    dataset = trained_on(dataset, sets)
    if not _belong_together(run.candidates, dataset, decided=run.record.parent is not None):
        run.problems.append(
            f"{config.data} has changed since the run: it has {len(dataset.samples)} images and "
            f"{len(dataset.class_names)} classes, but the run was trained on {len(run.candidates)} images and "
            f"{run.candidates.shape[1]} classes, or on other candidates. Pictures and true labels are not shown."
        )
        return None
    if not same_data(run.record.data_hash, dataset, run.candidates):
        run.problems.append(
            f"{config.data} may have changed since the run: its images or labels differ from those that the run was "
            "trained on. This page shows the current ones."
        )
    return dataset


def _other_way(data: str) -> str:
    """Return another way to make the data of a run available."""
    return "set the folder of the dataset with --data-dir" if data in SOURCES else "restore the data at their old path"


def _belong_together(candidates: np.ndarray, dataset: Dataset, decided: bool) -> bool:
    """Return whether the candidate sets match the data. After a person has `decided`, they may differ."""
    if candidates.shape != (len(dataset.samples), len(dataset.class_names)):
        return False
    return decided or dataset.candidates is None or _are_equal(candidates, dataset.candidates)


def _are_equal(first: np.ndarray, second: np.ndarray) -> bool:
    return all(np.array_equal(first[part], second[part]) for part in parts_of(*first.shape))


def _class_names(run: Run, folder: RunFolder, arrays: Arrays | None) -> tuple[str, ...]:
    """Return the class names from the data, the record or the model; otherwise numbers."""
    if run.dataset is not None:
        return run.dataset.class_names
    table = run.candidates if run.candidates is not None else None if arrays is None else arrays.confidence
    classes = 0 if table is None else table.shape[1]
    for names in (() if run.record is None else run.record.classes, _names_in_model(folder)):
        if names and classes in (0, len(names)):
            return names
    if classes:
        run.problems.append("The class names are unknown, so the classes are numbered.")
    return tuple(f"class {k}" for k in range(classes))


def _names_in_model(folder: RunFolder) -> tuple[str, ...]:
    """Return the class names in model.safetensors. Unlike `papi.runs.model`, this does not need torch."""
    try:
        file = plain_file(folder.model_file, memory_bytes(), inside=folder.path)
        with safe_open(file, "numpy") as opened:  # type: ignore[no-untyped-call]
            card = parse_json((opened.metadata() or {}).get("papi", "{}"))
    except (OSError, SafetensorError, ValueError):
        return ()
    names = card.get("class_names") if isinstance(card, dict) else None
    return tuple(map(str, names)) if isinstance(names, list) else ()
