"""Candidate sets made from labels: whole arrays against element by element."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Line, in_turns, speedup
from papi.data import candidates as generators

SAMPLES, CLASSES, FLIP_RATE = 50_000, 100, 0.1


def element_by_element(labels: np.ndarray) -> np.ndarray:
    """As one would write it first; the same numbers are drawn in the same order."""
    random = np.random.RandomState(0)
    sets = np.zeros((len(labels), CLASSES), bool)
    for i, label in enumerate(labels):
        for j in range(CLASSES):
            flipped = random.uniform() < FLIP_RATE
            sets[i, j] = flipped or j == label
    return sets


def measure(quick: bool) -> Iterator[Line]:
    """The loop does a tenth of the samples, and its time is counted tenfold."""
    labels = np.arange(SAMPLES) % CLASSES
    part = labels[: SAMPLES // 10]
    assert np.array_equal(element_by_element(part), generators.uniform(part, CLASSES, FLIP_RATE, 0))
    loop, ours = in_turns(
        [lambda: element_by_element(part), lambda: generators.uniform(labels, CLASSES, FLIP_RATE, 0)],
        2 if quick else 5,
    )
    yield speedup(f"candidate sets, N={SAMPLES:,}, K={CLASSES} : loop", (10 * loop, ours), 20)
