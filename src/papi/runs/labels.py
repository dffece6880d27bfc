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
    change: np.ndarray  # (N,) float64: how likely the label changes if a person decides
    rank: np.ndarray  # (N,) int64: 1 is most worth a second look, N least


def resolve(candidates: np.ndarray, confidence: np.ndarray, second_opinion: np.ndarray | None = None) -> Resolved:
    """Read labels off candidate sets `(N, K) bool` and the confidence `(N, K)` a method ended with.

    `second_opinion` `(N,)` is how much of its candidates the trained network gives the resolved label, where it was
    asked. It counts for the rank as much as confidence does: confidence was formed while the network still learned.

    The rank is by expected change: the chance that a person's answer is another label than the resolved one. Let q be
    what is believed of the labels y of an image: its confidence, with the share of the resolved label replaced by the
    mean with the second opinion and the others scaled so that all sum to one. Let M be the `set_prior`, and S the set.
    Answers are expected in proportion to q_y · √P(S | y), where P(S | y) = Π_j M_yj if j is in S, else 1 − M_yj: an
    image with a set that is usual for another of its labels deserves a look. The root is there because labels do not
    join a set independently, as the product pretends.
    """
    share = candidate_shares(candidates, confidence)
    rows = np.arange(len(share))
    label = np.where(candidates, share, -1).argmax(1)
    others = candidates.copy()
    others[rows, label] = False
    alone = np.asarray(~others.any(1))
    second = np.where(alone, -1, np.where(others, share, -1).argmax(1))
    first = share[rows, label]
    margin = first - np.where(alone, 0, share[rows, second])
    entropy = -(share * np.log(share, where=share > 0, out=np.zeros_like(share))).sum(1)
    outside = _outside(candidates, confidence)
    belief = _belief(candidates, confidence, share, label, second_opinion)
    belief = belief * np.sqrt(_likelihood(candidates, set_prior(share, candidates)))
    change = 1 - belief[rows, label] / belief.sum(1)
    rank = _rank(change, alone, outside >= 0)
    return Resolved(label, first, margin, entropy, second, outside, change, rank)


def candidate_shares(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Confidence `(N, K) float64` within each set, summing to one; a row that says nothing is uniform over its set."""
    if candidates.shape != confidence.shape or candidates.ndim != 2:
        raise ValueError(f"candidates {candidates.shape} and confidence {confidence.shape} must both be (N, K).")
    inside = np.where(candidates & np.isfinite(confidence), confidence, 0.0).astype(np.float64).clip(min=0)
    inside[inside.sum(1) == 0] = 1.0
    inside *= candidates
    shares: np.ndarray = inside / inside.sum(1, keepdims=True).clip(min=np.finfo(np.float64).tiny)
    return shares


def set_prior(shares: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """`(K, K)`: how often label j is a candidate of images of class k, from confidence C and sets S, both `(N, K)`.

    (CᵀS + 1) / (Cᵀ1 + 2): a class that no image belongs to has 1/2 everywhere.
    """
    prior: np.ndarray = (shares.T @ candidates.astype(float) + 1) / (shares.sum(0)[:, None] + 2)
    return prior


def _likelihood(candidates: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """`(N, K)`: how likely each set is for images of each class, up to a factor for each image."""
    sets = candidates.astype(float)
    logarithm = sets @ np.log(prior).T + (1 - sets) @ np.log(1 - prior).T
    highest = np.where(candidates, logarithm, -np.inf).max(1, keepdims=True)
    likelihood: np.ndarray = np.exp((logarithm - highest).clip(max=100))  # only labels outside the set may exceed 0
    return likelihood


def _outside(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Only a method that was told to doubt candidate sets believes in labels outside them."""
    believed = np.where(np.isfinite(confidence), confidence, 0.0)
    best = np.where(candidates, -1, believed).argmax(1)
    missing = np.where(candidates, -1, believed).max(1) > np.where(candidates, believed, -1).max(1)
    return np.where(missing, best, -1)


def _belief(
    candidates: np.ndarray, confidence: np.ndarray, share: np.ndarray, label: np.ndarray, opinion: np.ndarray | None
) -> np.ndarray:
    """What is believed of each image `(N, K)`, rows summing to one: the confidence, also in labels outside the set, and
    the second opinion on the label."""
    rows = np.arange(len(share))
    belief = np.where(np.isfinite(confidence), confidence, 0.0).astype(np.float64).clip(min=0)
    silent = (belief * candidates).sum(1) == 0
    belief[silent] = share[silent]
    belief /= belief.sum(1, keepdims=True)
    if opinion is None:
        return belief
    first = belief[rows, label]
    wanted = (first + np.clip(np.nan_to_num(opinion), 0, 1)) / 2
    others = candidates.copy()
    others[rows, label] = False
    belief[rows, label] = 0
    count = others.sum(1)
    certain = (first >= 1) & (count > 0)  # the others have nothing to scale: they share evenly
    belief[certain] = others[certain] / count[certain, None]
    belief *= ((1 - wanted) / np.maximum(belief.sum(1), np.finfo(float).tiny))[:, None]
    belief[rows, label] = 1 - belief.sum(1)
    return belief


def _rank(change: np.ndarray, alone: np.ndarray, doubted: np.ndarray) -> np.ndarray:
    """The largest expected change first.

    Sets that seem to lack the truth come before all, and images with one candidate last: there is nothing to decide.
    """
    order = np.lexsort((-change, alone, ~doubted))
    rank = np.empty(len(change), np.int64)
    rank[order] = np.arange(1, len(change) + 1)
    return rank
