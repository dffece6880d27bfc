"""A grid of eight runs that take a moment each: two methods, two flip rates, two seeds, one epoch."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papi import train as run
from papi.config import RunConfig
from papi.experiments.suites import Entry, Figure, Suite, Table, Task


def tiny_suite(data: Path) -> Suite:
    tasks = tuple(Task(str(data), "toy", f"q = {rate:g}", rate, batch_size=8) for rate in (0.1, 0.3))
    entries = (Entry("PRODEN", "proden"), Entry("CC", "cc"))
    table = Table("equal epochs", entries, tasks, (0, 1), epochs=1)
    return Suite("tiny", "Two methods on a toy", (table,), (Figure("curves", "Accuracy", "test_accuracy", table),))


def as_module(folder: Path, data: Path) -> str:
    """A module with the suite in it, for `papi bench tiny_module:SUITE` with the folder on PYTHONPATH."""
    here = str(Path(__file__).parent)
    text = f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {here!r})\nfrom tiny import tiny_suite\n"
    (folder / "tiny_module.py").write_text(f"{text}SUITE = tiny_suite(Path({str(data)!r}))\n")
    return "tiny_module:SUITE"


def train_cell(config: RunConfig, folder: Path) -> Path:
    """Train in this process, and record it as a run of `papi train`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["/somewhere/papi/__main__.py", "train"])
        for _ in run.train(replace(config, threads=1, device="cpu"), folder):
            pass
    return folder


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file of a run in place."""
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
