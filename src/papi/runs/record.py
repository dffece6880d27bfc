"""Creates the description of a run that is written into its folder before the first step."""

import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from papi.config import Settings, Values, to_dict
from papi.data.dataset import Dataset
from papi.data.own.agreement import annotators
from papi.runs.folder import RunFolder
from papi.runs.schema import ParentRecord, Record, Sets

_MOST_ANNOTATORS = 200


def record_of(
    settings: Settings,
    identity: Values,
    dataset: Dataset,
    statistics: Mapping[str, float],
    device: torch.device,
    parent: ParentRecord | None = None,
) -> Record:
    """Return the record of a run that begins now in this process."""
    return Record(
        config=to_dict(settings),
        identity=identity,
        classes=dataset.class_names,
        parent=parent,
        candidates=statistics,
        annotators=_annotators(dataset),
        threads=torch.get_num_threads(),
        versions={"python": platform.python_version()} | _versions(device),
        commit=_commit(),
        command=tuple(sys.argv),
    )


def _annotators(dataset: Dataset) -> dict[str, float]:
    """Return the estimated accuracy of the annotators; if there are many, of the least accurate ones."""
    if dataset.opinions is None:
        return {}
    found = annotators(dataset.opinions, dataset.class_names)
    return {each.name: each.accuracy for each in found[:_MOST_ANNOTATORS] if each.accuracy is not None}


def sets_of(dataset: Dataset, candidates: np.ndarray) -> Sets:
    """Return the candidate sets of a run with the file names or rows of its samples."""
    names = None if dataset.file_names is None else np.array(dataset.file_names)
    return Sets(candidates=candidates, file_names=names, rows=dataset.rows if names is None else None)


def begin(folder: RunFolder, record: Record, sets: Sets) -> None:
    """Write the description of a run, unless it already exists."""
    folder.create()
    folder.refuse_other_run(record.identity)  # another run may have started here in the meantime
    begun = folder.read_record() is not None
    if not begun or not folder.candidates_file.exists():
        folder.write_sets(sets)
    if not begun:
        folder.write_record(record)


def changed_versions(record: Record | None, device: torch.device) -> list[str]:
    """Return notes about versions that changed since the run began, because rounding may differ."""
    before = {} if record is None else record.versions
    return [
        f"this run began with {name} {before[name]} and continues with {now}: its result may differ in rounding."
        for name, now in _versions(device).items()
        if before.get(name, now) != now
    ]


def _versions(device: torch.device) -> dict[str, str]:
    return {name: version(name) for name in ("papi-pll", "torch", "numpy")} | {"processor": _processor(device)}


def _processor(device: torch.device) -> str:
    """Return the type of the processor, which affects rounding and speed."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def _commit() -> str | None:
    """Return the git revision of the sources; None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # git, and no shell  # nosec B603
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
