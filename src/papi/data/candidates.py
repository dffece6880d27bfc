"""Candidate sets made from true labels, and their statistics."""

import numpy as np


def uniform(labels: np.ndarray, classes: int, flip_rate: float, seed: int) -> np.ndarray:
    """Each wrong label joins with probability `flip_rate`, the true one always: `(N, K) bool`.

    The draw is that of the released code of PaPi and PiCO (NumPy's legacy generator, one uniform number for each
    sample and class in dataset order), so a seed gives the very same sets.
    """
    candidates: np.ndarray = np.random.RandomState(seed).uniform(0, 1, (len(labels), classes)) < flip_rate
    candidates[np.arange(len(labels)), labels] = True
    return candidates


def statistics(candidates: np.ndarray, labels: np.ndarray | None) -> dict[str, float]:
    """What a person wants to know about candidate sets before training on them."""
    sizes = candidates.sum(1)
    result = {
        "mean_candidates": float(sizes.mean()),
        "singletons": float((sizes == 1).mean()),
        "full_sets": float((sizes == candidates.shape[1]).mean()),
    }
    if labels is not None:
        result["true_label_present"] = float(candidates[np.arange(len(labels)), labels].mean())
    return result
