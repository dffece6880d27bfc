"""What became of each training image's candidates: the resolved label, how sure it is, what to look at first."""

from typing import NamedTuple

import numpy as np


class Resolved(NamedTuple):
    """One entry for each training image."""

    label: np.ndarray  # (N,) int64: the candidate with the highest confidence
    confidence: np.ndarray  # (N,) float64 of that label, candidates summing to one
    margin: np.ndarray  # (N,) float64: how far it is ahead of the second choice
    entropy: np.ndarray  # (N,) float64, nats: 0 when one candidate has it all
    second: np.ndarray  # (N,) int64: the second choice; -1 where there is one candidate only
    outside: np.ndarray  # (N,) int64: a label that is no candidate and believed in more than all that are; -1 if none
    rank: np.ndarray  # (N,) int64: 1 is most worth a second look, N least


def resolve(candidates: np.ndarray, confidence: np.ndarray, second_opinion: np.ndarray | None = None) -> Resolved:
    """Read labels off candidate sets `(N, K) bool` and the confidence `(N, K)` a method ended with.

    `second_opinion` `(N,)` is how much of its candidates the trained network gives the resolved label, where it was
    asked. It counts for the rank as much as confidence does: confidence was formed while the network still learned.
    """
    share = candidate_shares(candidates, confidence)
    rows = np.arange(len(share))
    label = np.where(candidates, share, -1).argmax(1)
    others = candidates.copy()
    others[rows, label] = False
    alone = ~others.any(1)
    second = np.where(alone, -1, np.where(others, share, -1).argmax(1))
    first = share[rows, label]
    margin = first - np.where(alone, 0, share[rows, second])
    entropy = -(share * np.log(share, where=share > 0, out=np.zeros_like(share))).sum(1)
    sureness = first if second_opinion is None else (first + np.nan_to_num(second_opinion)) / 2
    outside = _outside(candidates, confidence)
    return Resolved(label, first, margin, entropy, second, outside, _rank(sureness, entropy, alone, outside >= 0))


def candidate_shares(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Confidence `(N, K) float64` within each set, summing to one; a row that says nothing is uniform over its set."""
    if candidates.shape != confidence.shape or candidates.ndim != 2:
        raise ValueError(f"candidates {candidates.shape} and confidence {confidence.shape} must both be (N, K).")
    inside = np.where(candidates & np.isfinite(confidence), confidence, 0.0).astype(np.float64).clip(min=0)
    inside[inside.sum(1) == 0] = 1.0
    inside *= candidates
    shares: np.ndarray = inside / inside.sum(1, keepdims=True).clip(min=np.finfo(np.float64).tiny)
    return shares


def _outside(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Only a method that was told to doubt candidate sets believes in labels outside them."""
    believed = np.where(np.isfinite(confidence), confidence, 0.0)
    best = np.where(candidates, -1, believed).argmax(1)
    missing = np.where(candidates, -1, believed).max(1) > np.where(candidates, believed, -1).max(1)
    return np.where(missing, best, -1)


def _rank(sureness: np.ndarray, entropy: np.ndarray, alone: np.ndarray, doubted: np.ndarray) -> np.ndarray:
    """Those most likely to be wrong first; of equally sure ones, those spread over more candidates.

    Sets that seem to lack the truth come before all, and images with one candidate last: there is nothing to decide.
    """
    order = np.lexsort((-entropy, sureness, alone, ~doubted))
    rank = np.empty(len(sureness), np.int64)
    rank[order] = np.arange(1, len(sureness) + 1)
    return rank
