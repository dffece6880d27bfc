"""Generating candidate sets from labels: array operations against an element-by-element loop."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Line, in_turns, speedup
from papi.data import candidates as generators

SAMPLES, CLASSES, FLIP_RATE = 50_000, 100, 0.1


def element_by_element(labels: np.ndarray) -> np.ndarray:
    """The straightforward loop. It draws the same random numbers in the same order."""
    random = np.random.RandomState(0)
    sets = np.zeros((len(labels), CLASSES), bool)
    for i, label in enumerate(labels):
        for j in range(CLASSES):
            flipped = random.uniform() < FLIP_RATE
            sets[i, j] = flipped or j == label
    return sets


def measure(quick: bool) -> Iterator[Line]:
    """The loop processes a tenth of the samples, and its time is multiplied by ten."""
    labels = np.arange(SAMPLES) % CLASSES
    part = labels[: SAMPLES // 10]
    assert np.array_equal(element_by_element(part), generators.uniform(part, CLASSES, FLIP_RATE, 0))
    loop, ours = in_turns(
        [lambda: element_by_element(part), lambda: generators.uniform(labels, CLASSES, FLIP_RATE, 0)],
        2 if quick else 5,
    )
    yield speedup(f"candidate generation, N={SAMPLES:,}, K={CLASSES}, vs. loop", (10 * loop, ours))
