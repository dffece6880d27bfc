"""Finds confused classes and computes calibration. Without true labels, it counts second choices instead."""

from dataclasses import dataclass

import numpy as np

from papi.report.run import Run
from papi.training.metrics import calibration_bins

MATRIX_CLASSES = 24
PAIRS = 6
PAIR_IMAGES = 6


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix. `kind` is what was counted."""

    kind: str  # "test": test images; "training": resolved labels against true ones; "hesitation": second choices
    counts: np.ndarray  # (K, K): rows are true (or chosen) labels, columns predictions (or second choices)
    first: np.ndarray  # (n,) row of each image
    other: np.ndarray  # (n,) column of each image
    weight: np.ndarray  # (n,) how instructive each image is as an example

    @property
    def shares(self) -> np.ndarray:
        """Counts as fractions of each row."""
        share: np.ndarray = self.counts / self.counts.sum(1, keepdims=True).clip(min=1e-12)
        return share


@dataclass(frozen=True)
class Pair:
    """Two confused classes, with example images."""

    a: int
    b: int
    a_for_b: float
    b_for_a: float
    examples: tuple[int, ...]


@dataclass(frozen=True)
class Reliability:
    """Confidence and accuracy in non-empty bins."""

    said: np.ndarray
    right: np.ndarray
    count: np.ndarray
    error: float  # expected calibration error

    @property
    def table(self) -> list[tuple[float, float, int]]:
        """Confidence, accuracy and number of images of each bin; the most confident first."""
        rows = zip(self.said[::-1], self.right[::-1], self.count[::-1], strict=True)
        return [(float(said), float(right), int(count)) for said, right, count in rows]


def find_confusion(run: Run) -> Confusion | None:
    """Return the confusion on test images, otherwise on true training labels, otherwise of second choices."""
    classes = len(run.class_names)
    probabilities = run.kept.test_probabilities
    if probabilities is not None and run.test_labels is not None:
        taken = probabilities.argmax(1)
        return _counted("test", run.test_labels, taken, probabilities.max(1), classes)
    if run.resolved is None:
        return None
    if run.labels is not None:
        return _counted("training", run.labels, run.resolved.label, run.resolved.confidence, classes)
    alone = run.resolved.second < 0
    second = np.where(alone, run.resolved.label, run.resolved.second)
    doubt = np.where(alone, run.resolved.confidence, run.resolved.confidence - run.resolved.margin)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (run.resolved.label, second), doubt)
    np.add.at(counts, (run.resolved.label, run.resolved.label), 1 - doubt)
    return Confusion("hesitation", counts, run.resolved.label, second, -run.resolved.margin)


def _counted(kind: str, true: np.ndarray, taken: np.ndarray, weight: np.ndarray, classes: int) -> Confusion:
    counts = np.bincount(true * classes + taken, minlength=classes**2).reshape(classes, classes).astype(float)
    return Confusion(kind, counts, true, taken, weight)


def pairs(confusion: Confusion) -> list[Pair]:
    """Return the pairs of classes with the most confusions, the most frequent first."""
    between = np.triu(confusion.counts + confusion.counts.T, 1)
    shares = confusion.shares
    found = []
    for place in np.argsort(-between, axis=None, kind="stable")[:PAIRS]:
        a, b = (int(k) for k in np.unravel_index(place, between.shape))
        if between[a, b] <= 0:
            break
        mixed = ((confusion.first == a) & (confusion.other == b)) | ((confusion.first == b) & (confusion.other == a))
        which = np.flatnonzero(mixed)
        which = which[np.argsort(-confusion.weight[which], kind="stable")][:PAIR_IMAGES]
        found.append(Pair(a, b, float(shares[a, b]), float(shares[b, a]), tuple(int(i) for i in which)))
    return found


def matrix_classes(confusion: Confusion) -> list[int]:
    """Return the classes to show: all, or the most confused ones if there are many."""
    count = len(confusion.counts)
    if count <= MATRIX_CLASSES:
        return list(range(count))
    between = np.triu(confusion.counts + confusion.counts.T, 1)
    chosen: dict[int, None] = {}  # in order, each once
    for place in np.argsort(-between, axis=None, kind="stable"):
        chosen |= dict.fromkeys(int(k) for k in np.unravel_index(place, between.shape))
        if len(chosen) >= MATRIX_CLASSES:
            break
    return sorted(list(chosen)[:MATRIX_CLASSES])


def find_reliability(run: Run) -> Reliability | None:
    """Return the calibration on test images, otherwise on training images; None without true labels."""
    probabilities = run.kept.test_probabilities
    if probabilities is not None and run.test_labels is not None:
        return reliability(probabilities.max(1), probabilities.argmax(1) == run.test_labels)
    if run.resolved is not None and run.labels is not None:
        return reliability(run.resolved.confidence, run.resolved.label == run.labels)
    return None


def reliability(certainty: np.ndarray, right: np.ndarray) -> Reliability:
    """Compute confidence and accuracy in ten bins, and the expected calibration error."""
    said, hit, count = calibration_bins(certainty, right)
    return Reliability(said, hit, count, float((np.abs(said - hit) * count).sum() / count.sum()))
