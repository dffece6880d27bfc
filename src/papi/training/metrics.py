"""What is measured: arrays in, floats out."""

from collections.abc import Sequence

import numpy as np

CALIBRATION_BINS = 10
CRITERIA = ("covering_rate", "approximated_accuracy", "candidate_likelihood")
"""What judges a model by candidate sets alone, under the names they have in the rows of a run; more is better."""


def accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Share of equal entries."""
    return float((predicted == labels).mean())


def level_accuracies(predicted: np.ndarray, labels: np.ndarray, levels: Sequence[Sequence[str]]) -> list[float]:
    """For each level of a tree of classes, the share of predictions in the group of the true label."""
    groups = [np.unique(np.array(level), return_inverse=True)[1] for level in levels]
    return [accuracy(group[predicted], group[labels]) for group in groups]


def criteria(probabilities: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    """All of `CRITERIA`, from probabilities `(N, K)` and candidate sets `(N, K) bool` of samples not trained on."""
    return {
        "covering_rate": covering_rate(probabilities.argmax(1), candidates),
        "approximated_accuracy": approximated_accuracy(probabilities, candidates),
        "candidate_likelihood": candidate_likelihood(probabilities, candidates),
    }


def covering_rate(predicted: np.ndarray, candidates: np.ndarray) -> float:
    """Share of samples whose predicted label `(N,)` is among their candidates `(N, K) bool`."""
    return float(candidates[np.arange(len(predicted)), predicted].mean())


def approximated_accuracy(probabilities: np.ndarray, candidates: np.ndarray) -> float:
    """Mean of p(predicted) / sum of p over the candidates where the prediction is a candidate, and 0 where it is not.

    So an answer counts for as much as the model itself believes in it among the candidates. This is PLENCH's measure
    (Wang et al., ICLR 2025; `val_approximated_accuracy` of its release): one minus the expected zero-one loss under
    probabilities restricted to the candidates and normalised.
    """
    inside = np.where(candidates, probabilities, 0).astype(np.float64)
    credit = inside[np.arange(len(inside)), probabilities.argmax(1)]
    return float((credit / inside.sum(1).clip(min=np.finfo(np.float64).tiny)).mean())


def candidate_likelihood(probabilities: np.ndarray, candidates: np.ndarray) -> float:
    """Mean of the logarithm of the summed probability of the candidates: 0 at best, in nats."""
    inside = np.where(candidates, probabilities, 0).sum(1, dtype=np.float64)
    return float(np.log(inside.clip(min=np.finfo(np.float32).tiny)).mean())


def picked(values: Sequence[float]) -> int:
    """Position of the highest value, of equal ones the last: it was trained for longest. NaN is never picked."""
    comparable = np.where(np.isnan(values), -np.inf, values)
    return int(len(comparable) - 1 - comparable[::-1].argmax())


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Expected calibration error: how far what a model says of its certainty is from how often it is right.

    Over ten equal bins of certainty, the distance of the two means, weighted by the samples in each bin.
    """
    said, right, count = calibration_bins(probabilities.max(1), probabilities.argmax(1) == labels)
    return float((np.abs(said - right) * count).sum() / count.sum())


def calibration_bins(certainty: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers in ten bins of certainty: what was said on average, how often it was right, and how many there are.

    Bins without answers are left out.
    """
    place = np.minimum((certainty * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    count = np.bincount(place, minlength=CALIBRATION_BINS)
    filled = count > 0
    said, hit = (np.bincount(place, values, CALIBRATION_BINS)[filled] / count[filled] for values in (certainty, right))
    return said, hit, count[filled]


def class_similarity(features: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cosine within classes (over pairs of different samples) and between classes, of unit features `(N, d)`.

    Both follow from the sum vector of each class, without forming the N x N matrix. A class with fewer than two samples
    has no pair and counts only between classes; with nothing to average the result is NaN.
    """
    present = np.unique(labels)
    member = (labels[:, None] == present).astype(np.float64)
    count = member.sum(0)
    total = member.T @ features.astype(np.float64)
    paired = count > 1
    within = ((total**2).sum(1) - count)[paired] / (count * (count - 1))[paired]
    between = (total @ total.T / np.outer(count, count))[np.triu_indices(len(present), 1)]
    return (float(within.mean()) if within.size else np.nan), (float(between.mean()) if between.size else np.nan)
