"""Runs as the report sees them, made by hand: no folder, no training."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset
from papi.report.fitting import Kept
from papi.report.run import Run
from papi.runs.schema import EpochRow


def epochs(count: int, **values: Sequence[float | None]) -> tuple[EpochRow, ...]:
    """`epochs(2, test_accuracy=[0.1, 0.2])`: rows with these measurements."""
    return tuple(
        EpochRow(epoch=n, **{"loss": 1.0, "seconds": 2.0} | {name: column[n] for name, column in values.items()})
        for n in range(count)
    )


def run_of(
    confidence: Sequence[Sequence[float]],
    *,
    labels: Sequence[int] | None = None,
    test_probabilities: Sequence[Sequence[float]] | None = None,
    test_labels: Sequence[int] | None = None,
    rows: tuple[EpochRow, ...] = (),
    path: str = "run",
) -> Run:
    """A run whose candidates are the labels with a confidence above zero, on images with one grey level each."""
    table = np.array(confidence, np.float32)
    classes = table.shape[1]
    dataset = Dataset(
        "toy",
        tuple("abcdefghijklmnopqrstuvwxyz"[:classes]),
        np.arange(len(table), dtype=np.uint8)[:, None, None, None] * np.ones((1, 1, 4, 4), np.uint8),
        (0.5,),
        (0.5,),
        labels=None if labels is None else np.array(labels),
        test_samples=None if test_labels is None else np.zeros((len(test_labels), 1, 4, 4), np.uint8),
        test_labels=None if test_labels is None else np.array(test_labels),
    )
    tested = None if test_probabilities is None else np.array(test_probabilities, np.float32)
    return Run(
        Path(path),
        rows=rows,
        candidates=table > 0,
        kept=Kept(table, test_probabilities=tested),
        dataset=dataset,
        class_names=dataset.class_names,
    )
