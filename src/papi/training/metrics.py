"""Metrics: functions from arrays to floats."""

from collections.abc import Sequence

import numpy as np

CALIBRATION_BINS = 10
CRITERIA = ("covering_rate", "approximated_accuracy", "candidate_likelihood")
"""Criteria that need only candidate labels, named as in the rows of a run; higher is better."""


def accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of correct predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.training.metrics import accuracy
    >>> accuracy(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1]))
    0.75
    """
    return float((predicted == labels).mean())


def level_accuracies(predicted: np.ndarray, labels: np.ndarray, levels: Sequence[Sequence[str]]) -> list[float]:
    """For each level of a class hierarchy, the fraction of predictions in the group of the true label."""
    groups = [np.unique(np.array(level), return_inverse=True)[1] for level in levels]
    return [accuracy(group[predicted], group[labels]) for group in groups]


def criteria(probabilities: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    """All `CRITERIA`, from probabilities `(N, K)` and candidate sets `(N, K) bool` of a validation set."""
    return {
        "covering_rate": covering_rate(probabilities.argmax(1), candidates),
        "approximated_accuracy": approximated_accuracy(probabilities, candidates),
        "candidate_likelihood": candidate_likelihood(probabilities, candidates),
    }


def covering_rate(predicted: np.ndarray, candidates: np.ndarray) -> float:
    """Return the fraction of samples whose predicted label `(N,)` is among their candidates `(N, K) bool`.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.training.metrics import covering_rate
    >>> covering_rate(np.array([0, 1]), np.array([[True, True, False], [True, False, True]]))
    0.5
    """
    return float(candidates[np.arange(len(predicted)), predicted].mean())


def approximated_accuracy(probabilities: np.ndarray, candidates: np.ndarray) -> float:
    """Return the mean of p(predicted) / (sum of p over the candidates), with 0 if the prediction is not a candidate.

    Each prediction is weighted by its probability relative to the other candidates. This is PLENCH's measure
    (Wang et al., ICLR 2025; `val_approximated_accuracy` in its release): one minus the expected zero-one loss under
    probabilities restricted to the candidates and normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.training.metrics import approximated_accuracy
    >>> approximated_accuracy(np.array([[0.5, 0.125, 0.375]]), np.array([[True, True, False]]))
    0.8
    """
    inside = np.where(candidates, probabilities, 0).astype(np.float64)
    credit = inside[np.arange(len(inside)), probabilities.argmax(1)]
    return float((credit / inside.sum(1).clip(min=np.finfo(np.float64).tiny)).mean())


def candidate_likelihood(probabilities: np.ndarray, candidates: np.ndarray) -> float:
    """Return the mean logarithm of the summed probability of the candidates: 0 at best, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.training.metrics import candidate_likelihood
    >>> round(candidate_likelihood(np.array([[0.6, 0.2, 0.2]]), np.array([[True, True, False]])), 3)
    -0.223
    """
    inside = np.where(candidates, probabilities, 0).sum(1, dtype=np.float64)
    return float(np.log(inside.clip(min=np.finfo(np.float32).tiny)).mean())


def picked(values: Sequence[float]) -> int:
    """Index of the highest value. Of equal values, the last is selected: it was trained longest. NaN is ignored."""
    comparable = np.where(np.isnan(values), -np.inf, values)
    return int(len(comparable) - 1 - comparable[::-1].argmax())


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the expected calibration error: the gap between predicted probability and accuracy.

    Predictions are put into ten equal bins by their highest probability. The gap between its mean and the accuracy is
    averaged over the bins, weighted by the number of samples in each.

    Examples
    --------
    >>> import numpy as np
    >>> from papi.training.metrics import calibration_error
    >>> calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]))
    0.4
    """
    said, right, count = calibration_bins(probabilities.max(1), probabilities.argmax(1) == labels)
    return float((np.abs(said - right) * count).sum() / count.sum())


def calibration_bins(certainty: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put predictions into ten bins by certainty. Returns mean certainty, accuracy and number of predictions by bin.

    Empty bins are left out.
    """
    place = np.minimum((certainty * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    count = np.bincount(place, minlength=CALIBRATION_BINS)
    filled = count > 0
    said, hit = (np.bincount(place, values, CALIBRATION_BINS)[filled] / count[filled] for values in (certainty, right))
    return said, hit, count[filled]


def class_similarity(features: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cosine within classes (over pairs of different samples) and between classes, of unit features `(N, d)`.

    Both are computed from the sum vector of each class, without the N x N matrix. A class with fewer than two samples
    has no pairs and counts only between classes. A mean over nothing is NaN.
    """
    present = np.unique(labels)
    member = (labels[:, None] == present).astype(np.float64)
    count = member.sum(0)
    total = member.T @ features.astype(np.float64)
    paired = count > 1
    within = ((total**2).sum(1) - count)[paired] / (count * (count - 1))[paired]
    between = (total @ total.T / np.outer(count, count))[np.triu_indices(len(present), 1)]
    return (float(within.mean()) if within.size else np.nan), (float(between.mean()) if between.size else np.nan)
