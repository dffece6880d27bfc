"""Resolves the label of each training image and ranks the images by how doubtful they are."""

from functools import reduce
from typing import NamedTuple

import numpy as np

from papi.data.packed_rows import Matrix, PackedRows, parts_of

_WIDTHS = (2, 4, 8, 16, 32, 64)  # of sets that are looked at together
_ENTRIES = 2**21  # of packed rows that are multiplied at a time, about 100 bytes each


class Resolved(NamedTuple):
    """One entry per training image."""

    label: np.ndarray  # (N,) int64: the candidate with the highest confidence
    confidence: np.ndarray  # (N,) float64 of that label, candidates summing to one
    margin: np.ndarray  # (N,) float64: difference to the confidence of the second choice
    entropy: np.ndarray  # (N,) float64, in nats
    second: np.ndarray  # (N,) int64: the second choice; -1 if there is only one candidate
    outside: np.ndarray  # (N,) int64: a label outside the candidates with more confidence than all of them; -1 if none
    change: np.ndarray  # (N,) float64: probability that a person's decision changes the label
    rank: np.ndarray  # (N,) int64: 1 is the most doubtful image


class Together(NamedTuple):
    """How often labels occur together. Each image counts for its classes by its shares."""

    images: np.ndarray  # (K, K): images of class k with the candidate j
    members: np.ndarray  # (K,): images of each class

    @property
    def prior(self) -> np.ndarray:
        """`(K, K)`: how often label j is a candidate of images of class k, (images + 1) / (members + 2).

        A class that no image belongs to has 1/2 everywhere.
        """
        prior: np.ndarray = (self.images + 1) / (self.members[:, None] + 2)
        return prior


def resolve(
    candidates: np.ndarray,
    confidence: Matrix,
    second_opinion: np.ndarray | None = None,
    together: Together | None = None,
) -> Resolved:
    """Read labels off candidate sets `(N, K) bool` and the confidence `(N, K)` a method ended with.

    Packed confidence is that of the candidates, and is read some rows at a time.

    `second_opinion` `(N,)` is how much of its candidates the trained network gives the resolved label, where it was
    asked. It counts for the rank as much as confidence does: confidence was formed while the network still learned.

    Images are ranked by expected change: the probability that a person's answer differs from the resolved label. Let
    q_y be the belief in each label y of an image: its confidence, with the share of the resolved label replaced by the
    mean with the second opinion and the others scaled to sum to one. Let M be the prior of the labels that occur
    `together`, which is computed unless given, and S the candidate set.
    Answers are expected in proportion to q_y · √P(S | y), where P(S | y) = Π_j M_yj if j is in S, else 1 − M_yj. So an
    image whose set is typical of another of its labels gets a higher rank. The square root accounts for the fact that
    labels do not join a set independently, as the product assumes.
    """
    prior = (together or find_together(candidates, confidence)).prior
    if isinstance(confidence, PackedRows):
        found = _resolve_packed(candidates, confidence, prior, second_opinion)
    else:
        likelihood = _likelihood(candidates, prior)
        found = *_read_off(candidates, confidence, likelihood, second_opinion), _outside(candidates, confidence)
    label, first, margin, entropy, second, change, outside = found
    return Resolved(label, first, margin, entropy, second, outside, change, _rank(change, second < 0, outside >= 0))


def _read_off(
    candidates: np.ndarray, confidence: np.ndarray, likelihood: np.ndarray, second_opinion: np.ndarray | None
) -> tuple[np.ndarray, ...]:
    """Label, its confidence, margin, entropy, second choice and expected change, each `(N,)`."""
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
    belief = _belief(candidates, confidence, share, label, second_opinion) * np.sqrt(likelihood)
    change = 1 - belief[rows, label] / belief.sum(1)
    return label, first, margin, entropy, second, change


def _resolve_packed(
    candidates: np.ndarray, confidence: PackedRows, prior: np.ndarray, opinion: np.ndarray | None
) -> tuple[np.ndarray, ...]:
    """As `_read_off`, and no label outside. Of small sets the candidates alone are looked at, those of a size together.

    Pairs of candidates are few there. A large set is unfolded: a product of matrices is quicker then.
    """
    found, order = [], []
    groups = np.searchsorted(_WIDTHS, confidence.sizes)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        width = _WIDTHS[group] ** 2 if group < len(_WIDTHS) else confidence.classes
        for part in parts_of(len(rows), width):
            some = rows[part]
            asked = None if opinion is None else opinion[some]
            if group == len(_WIDTHS):
                inside, values, columns = candidates[some], confidence[some], None
                likelihood = _likelihood(inside, prior)
            else:
                values, columns, inside = confidence.taking(some).padded()
                likelihood = _likelihood_inside(columns, inside, prior)
            label, *numbers, second, change = _read_off(inside, values, likelihood, asked)
            if columns is not None:
                label, second = (
                    np.where(place < 0, -1, columns[np.arange(len(some)), place]) for place in (label, second)
                )
            found.append((label, *numbers, second, change))
            order.append(some)
    back = np.argsort(np.concatenate(order), kind="stable")
    return *(np.concatenate(each)[back] for each in zip(*found, strict=True)), np.full(len(confidence), -1)


def candidate_shares(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Normalise confidence `(N, K) float64` within each set to sum to one; a row of zeros becomes uniform."""
    if candidates.shape != confidence.shape or candidates.ndim != 2:
        raise ValueError(f"candidates {candidates.shape} and confidence {confidence.shape} must both be (N, K).")
    inside = np.where(candidates & np.isfinite(confidence), confidence, 0.0).astype(np.float64).clip(min=0)
    inside[inside.sum(1) == 0] = 1.0
    inside *= candidates
    shares: np.ndarray = inside / inside.sum(1, keepdims=True).clip(min=np.finfo(np.float64).tiny)
    return shares


def find_together(candidates: np.ndarray, confidence: Matrix) -> Together:
    """Count labels that occur together in sets S, with the `candidate_shares` C of each image: CᵀS and Cᵀ1."""
    if not isinstance(confidence, PackedRows):
        shares = candidate_shares(candidates, confidence)
        return Together(shares.T @ candidates.astype(float), shares.sum(0))
    at_once = max(1, _ENTRIES // max(1, int(confidence.sizes.max(initial=1))))
    parts = (
        _packed_together(confidence.taking(np.arange(start, min(start + at_once, len(confidence)))))
        for start in range(0, len(confidence), at_once)
    )
    return reduce(lambda first, second: Together(first.images + second.images, first.members + second.members), parts)


def _packed_together(confidence: PackedRows) -> Together:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]  # here, so that training starts quickly

    believed = np.nan_to_num(confidence.values.astype(np.float64), nan=0, posinf=0, neginf=0).clip(min=0)
    inside = np.repeat(np.add.reduceat(believed, confidence.starts[:-1]), confidence.sizes)
    size = np.repeat(confidence.sizes, confidence.sizes)
    share = np.where(inside > 0, believed / np.where(inside > 0, inside, 1), 1 / size)
    shares, sets = (
        csr_array((values, confidence.columns, confidence.starts), shape=confidence.shape)
        for values in (share, np.ones(len(share)))
    )
    return Together((shares.T @ sets).toarray(), np.bincount(confidence.columns, share, confidence.classes))


def _likelihood(candidates: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Compute the likelihood of each set for each class, `(N, K)`, up to a factor per image."""
    sets = candidates.astype(float)
    logarithm = sets @ np.log(prior).T + (1 - sets) @ np.log(1 - prior).T
    highest = np.where(candidates, logarithm, -np.inf).max(1, keepdims=True)
    likelihood: np.ndarray = np.exp((logarithm - highest).clip(max=100))  # only labels outside the set may exceed 0
    return likelihood


def _likelihood_inside(columns: np.ndarray, inside: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The same for the candidates alone, `(N, W)`, whose classes are the `columns` that are `inside`."""
    odds = np.log(prior) - np.log(1 - prior)
    pairs = odds[columns[:, :, None], columns[:, None, :]] * inside[:, None, :]
    logarithm = pairs.sum(2) + np.log(1 - prior).sum(1)[columns]
    highest = np.where(inside, logarithm, -np.inf).max(1, keepdims=True)
    likelihood: np.ndarray = np.where(inside, np.exp(np.minimum(logarithm - highest, 0)), 0)
    return likelihood


def _outside(candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Return the most likely label outside the candidates, if the method prefers one; most methods never do."""
    believed = np.where(np.isfinite(confidence), confidence, 0.0)
    best = np.where(candidates, -1, believed).argmax(1)
    missing = np.where(candidates, -1, believed).max(1) > np.where(candidates, believed, -1).max(1)
    return np.where(missing, best, -1)


def _belief(
    candidates: np.ndarray, confidence: np.ndarray, share: np.ndarray, label: np.ndarray, opinion: np.ndarray | None
) -> np.ndarray:
    """Combine the confidence, including labels outside the set, with the second opinion: `(N, K)`, rows sum to one."""
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
    certain = (first >= 1) & (count > 0)  # the others are all zero: divide evenly
    belief[certain] = others[certain] / count[certain, None]
    belief *= ((1 - wanted) / np.maximum(belief.sum(1), np.finfo(float).tiny))[:, None]
    belief[rows, label] = 1 - belief.sum(1)
    return belief


def _rank(change: np.ndarray, alone: np.ndarray, doubted: np.ndarray) -> np.ndarray:
    """Rank by expected change, the largest first.

    Sets that seem to lack the true label come first, and images with a single candidate last.
    """
    order = np.lexsort((-change, alone, ~doubted))
    rank = np.empty(len(change), np.int64)
    rank[order] = np.arange(1, len(change) + 1)
    return rank
