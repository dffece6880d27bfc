"""What is measured: arrays in, floats out."""

import numpy as np


def accuracy(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Share of equal entries."""
    return float((predicted == labels).mean())


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
