"""Runs of a few steps, and what has to be equal when one was interrupted and the other was not."""

import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from preloaded import Child, Preloaded

from papi.runs.doctor import check_up
from papi.runs.folder import RunFolder

VARYING = ("seconds", "cpu_seconds", "images_per_second")  # what a clock decides


def write_data(path: Path) -> Path:
    """48 noisy images of 8x8 pixels in 3 classes, and 12 for testing."""
    noise = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = noise.integers(0, 120, (60, 8, 8))
    images[np.arange(60), 2 * labels] += 120
    pixels = images.astype(np.uint8)
    np.savez(
        path, images=pixels[:48], labels=labels[:48], test_images=pixels[48:], test_labels=labels[48:],
        class_names=np.array(["one", "two", "three"]),
    )  # fmt: skip
    return path


def train(data: Path, folder: Path, method: str = "papi", epochs: int = 2, every: str = "1") -> list[object]:
    """The words of a command: two steps an epoch, saved at each."""
    return [
        "train", "--data", data, "--out", folder, "--method", method, "--epochs", epochs, "--batch-size", 24,
        "--checkpoint.every", every, "--device", "cpu", "--threads", 1, "--network", "small",
    ]  # fmt: skip


def result(folder: Path) -> tuple[bytes, list[dict[str, Any]], set[str]]:
    """Everything that must not depend on what happened on the way: model, rows, and which files there are.

    The lock of a process that was killed after the last file was written stays, and locks nobody out.
    """
    rows = [{k: v for k, v in row.to_json().items() if k not in VARYING} for row in RunFolder(folder).read_rows()]
    names = {file.name for file in folder.iterdir()} - {"run.lock"}
    return (folder / "model.safetensors").read_bytes(), rows, names


def damage(folder: Path) -> list[str]:
    """What `papi doctor` finds wrong; a folder in which the run had not begun has nothing to find."""
    if all(file.name.startswith((".", "run.lock")) for file in folder.iterdir()):
        return []
    return [finding.says for finding in check_up(folder).findings if finding.wrong]


def wait_for(file: Path, child: Child, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} did not appear: {child.said}"
        time.sleep(0.005)


def kill_often(
    processes: Preloaded, command: list[object], folder: Path, kills: int, seconds: float, chance: random.Random
) -> int:
    """Kill a run at random moments, go on, kill again, and let it end; the number of times that it was continued.

    A quarter of the kills strike while it starts, the others within the `seconds` of its steps and saves. One that ends
    before its kill begins anew, so that all kills count. Nothing may be damaged at any time.
    """
    output = folder.with_name(f"{folder.name}.said")
    done = continued = 0
    while done < kills:
        child = processes.start(*command, output=output)
        if chance.random() < 0.75:
            wait_until_training(child)
        time.sleep(chance.uniform(0, seconds))
        child.send(signal.SIGKILL)
        if child.wait() == -signal.SIGKILL:
            done += 1
            assert folder.exists() is False or damage(folder) == []
        else:
            assert child.code == 0, child.said
            shutil.rmtree(folder)
        continued += "continuing in epoch" in child.said
    last = processes.run(*command, output=output)
    assert last.code == 0, last.said
    return continued + ("continuing in epoch" in last.said)


def wait_until_training(child: Child, seconds: float = 180) -> None:
    """Until the first step is about to begin, or the run says that it is complete."""
    deadline = time.monotonic() + seconds
    while "test accuracy" not in child.said.lower():
        assert time.monotonic() < deadline, child.said
        time.sleep(0.002)


def training_seconds(folder: Path) -> float:
    """How long the steps, evaluations and saves of a finished run took."""
    summary = RunFolder(folder).read_summary()
    assert summary is not None
    return float(summary.seconds)
