"""What a run is and what it gave, as it is written into its folder."""

import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from papi.config import NEUTRAL, RunConfig, to_dict
from papi.data.dataset import Dataset
from papi.data.digest import data_hash
from papi.runs.folder import RunFolder
from papi.runs.parent import Parent
from papi.training.metrics import CRITERIA
from papi.training.selection import Pick


def identity_of(
    config: RunConfig, method_config: dict[str, Any], dataset: Dataset, candidates: np.ndarray
) -> dict[str, Any]:
    """All that decides the result of a run, as JSON values. Data are told by a hash."""
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in method_config.items()}
    settings = {name: value for name, value in to_dict(config).items() if name not in NEUTRAL or value != NEUTRAL[name]}
    return settings | {"option": options, "data_hash": data_hash(dataset, candidates)}


def begin(
    folder: RunFolder,
    config: RunConfig,
    identity: dict[str, Any],
    dataset: Dataset,
    candidates: np.ndarray,
    statistics: dict[str, float],
    parent: Parent | None,
    device: torch.device,
) -> None:
    """Write what a run is before its first step, unless an earlier part of it has."""
    folder.create()
    folder.refuse_other_run(identity)  # which may have begun here while this one got ready
    begun = folder.read_config() is not None
    if not begun or not folder.candidates_file.exists():
        arrays = {"candidates": candidates}
        if dataset.file_names is not None:
            arrays["file_names"] = np.array(dataset.file_names)
        elif dataset.rows is not None:
            arrays["rows"] = dataset.rows
        folder.write_arrays(folder.candidates_file, arrays)
    if begun:
        return
    folder.write_config(
        {
            "config": to_dict(config),
            "identity": identity,
            **({} if parent is None else {"parent": parent.record}),
            "classes": list(dataset.class_names),
            "candidates": statistics,
            "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version()} | _versions(device),
            "commit": _commit(),
            "command": sys.argv,
        }
    )


def _versions(device: torch.device) -> dict[str, str]:
    return {name: version(name) for name in ("papi-pll", "torch", "numpy")} | {"processor": _processor(device)}


def _processor(device: torch.device) -> str:
    """Its kind, which decides how sums are rounded and how long they take."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def _commit() -> str | None:
    """The revision of these sources, where they are a checkout and not an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def changed_versions(folder: RunFolder, device: torch.device) -> list[str]:
    """What computes now and computed otherwise when the run began: it may round otherwise, too."""
    before = (folder.read_config() or {}).get("versions") or {}
    return [
        f"this run began with {name} {before[name]} and goes on with {now}: it may no longer end bit-equal."
        for name, now in _versions(device).items()
        if before.get(name, now) != now
    ]


def summarise(
    config: RunConfig,
    dataset: Dataset,
    statistics: dict[str, float],
    rows: list[dict[str, Any]],
    pick: Pick,
    images: int,
) -> dict[str, Any]:
    """The result of a run. Its accuracy is that of the epoch picked without true labels, by default the last.

    The accuracies of the last epoch and of the best on the test images stand beside it.
    """
    result = pick.row(rows)
    accuracies = [row["test_accuracy"] for row in rows if "test_accuracy" in row]
    last10 = accuracies[-10:]
    return {
        "method": config.method,
        "dataset": dataset.name,
        "network": config.network,
        "seed": config.seed,
        "epochs": config.epochs,
        "flip_rate": config.candidates.rate if dataset.candidates is None else None,
        **statistics,
        "select": config.select,
        "picked_epoch": result["epoch"],
        **{name: result.get(name) for name in ("test_accuracy", "prototype_accuracy", *CRITERIA)},
        "calibration_error": None,
        "uncalibrated_error": result.get("calibration_error"),
        "test_accuracy_last": rows[-1].get("test_accuracy"),
        "test_accuracy_best": max(accuracies, default=None),
        "test_accuracy_last10": sum(last10) / len(last10) if last10 else None,
        "training_images": images,
        "held_out_images": len(dataset.samples) - images,
        "seconds": rows[-1]["seconds"],
        "cpu_seconds": sum(row["cpu_seconds"] for row in rows),
        "images_per_second": len(rows) / sum(1 / row["images_per_second"] for row in rows),
    }
