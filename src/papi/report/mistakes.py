"""Where the model goes wrong, or hesitates if the truth is not known: pairs of classes, and how far to trust it."""

from dataclasses import dataclass

import numpy as np

from papi.report.run import Run
from papi.training.metrics import calibration_bins

MATRIX_CLASSES = 24
PAIRS = 6
PAIR_IMAGES = 6


@dataclass(frozen=True)
class Confusion:
    """How often one class is taken for another. `kind` says what was counted."""

    kind: str  # "test": test images; "training": resolved labels against true ones; "hesitation": second choices
    counts: np.ndarray  # (K, K): rows true (or chosen), columns taken for (or second choice)
    first: np.ndarray  # (n,) row of each image
    other: np.ndarray  # (n,) column of each image
    weight: np.ndarray  # (n,) how telling an image is as an example

    @property
    def shares(self) -> np.ndarray:
        """Counts as shares of each row."""
        share: np.ndarray = self.counts / self.counts.sum(1, keepdims=True).clip(min=1e-12)
        return share


@dataclass(frozen=True)
class Pair:
    """Two classes that are mixed up, with images that show it."""

    a: int
    b: int
    a_for_b: float
    b_for_a: float
    examples: tuple[int, ...]


@dataclass(frozen=True)
class Reliability:
    """Certainty against being right, by bins that hold any answers."""

    said: np.ndarray
    right: np.ndarray
    count: np.ndarray
    error: float  # expected calibration error

    @property
    def table(self) -> list[tuple[float, float, int]]:
        """What is said, how often that is right, and of how many images; the surest first."""
        rows = zip(self.said[::-1], self.right[::-1], self.count[::-1], strict=True)
        return [(float(said), float(right), int(count)) for said, right, count in rows]


def find_confusion(run: Run) -> Confusion | None:
    """From the best evidence there is: test images, else true training labels, else the model's second choices."""
    classes = len(run.class_names)
    probabilities = run.kept.test_probabilities
    if probabilities is not None and run.test_labels is not None:
        taken = probabilities.argmax(1)
        return _counted("test", run.test_labels, taken, probabilities.max(1), classes)
    if run.resolved is None or run.shares is None:
        return None
    if run.labels is not None:
        return _counted("training", run.labels, run.resolved.label, run.resolved.confidence, classes)
    second = np.where(run.resolved.second < 0, run.resolved.label, run.resolved.second)
    doubt = run.shares[np.arange(len(second)), second]
    counts = np.zeros((classes, classes))
    np.add.at(counts, (run.resolved.label, second), doubt)
    np.add.at(counts, (run.resolved.label, run.resolved.label), 1 - doubt)
    return Confusion("hesitation", counts, run.resolved.label, second, -run.resolved.margin)


def _counted(kind: str, true: np.ndarray, taken: np.ndarray, weight: np.ndarray, classes: int) -> Confusion:
    counts = np.bincount(true * classes + taken, minlength=classes**2).reshape(classes, classes).astype(float)
    return Confusion(kind, counts, true, taken, weight)


def pairs(confusion: Confusion) -> list[Pair]:
    """The pairs that account for most mistakes, most frequent first."""
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
    """Classes to show: all, or of many those with the most mistakes between each other."""
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
    """On test images, else on training labels; None without any truth."""
    probabilities = run.kept.test_probabilities
    if probabilities is not None and run.test_labels is not None:
        return reliability(probabilities.max(1), probabilities.argmax(1) == run.test_labels)
    if run.resolved is not None and run.labels is not None:
        return reliability(run.resolved.confidence, run.resolved.label == run.labels)
    return None


def reliability(certainty: np.ndarray, right: np.ndarray) -> Reliability:
    """Answers in ten bins of certainty: what was said, how often it was right, and the mean distance of the two."""
    said, hit, count = calibration_bins(certainty, right)
    return Reliability(said, hit, count, float((np.abs(said - hit) * count).sum() / count.sum()))
