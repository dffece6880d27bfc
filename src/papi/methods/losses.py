"""Losses and targets of partial-label learning: pure functions of logits `(B, K)` and candidate masks `(B, K) bool`.

Where sets may lack the truth, `candidates` are what each label counts, from 0 to 1, instead (`methods.noise`).

Everything is computed through log-softmax and in float32 or wider, so that logits of any size stay finite.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize, one_hot


def wide(values: Tensor) -> Tensor:
    """Half precision is too coarse for probabilities: float32 at least."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _among(logits: Tensor, candidates: Tensor) -> Tensor:
    """Logits with the logarithm of what each label counts added: -∞ outside the candidates."""
    if candidates.dtype == torch.bool:
        return logits.masked_fill(~candidates, -torch.inf)
    return logits + candidates.log()


def candidate_softmax(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax over the candidates alone: zero elsewhere, rows sum to one."""
    return _among(wide(logits), candidates).softmax(1)


def candidate_argmax(scores: Tensor, candidates: Tensor) -> Tensor:
    """The best-scored candidate of each row, `(B,)`."""
    return _among(scores, candidates).argmax(1)


def rectified(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax rescaled inside and outside the candidates, so that no other label is above the lowest candidate (DIRK).

    Proportions on each side stay, and rows sum to one. With u = softmax(logits) and c the highest share among the other
    labels alone, the candidates together get c / (c + min u), and the others the rest. A full set keeps its softmax.
    """
    logits = wide(logits)
    inside, outside = candidate_softmax(logits, candidates), candidate_softmax(logits, ~candidates)
    lowest = log_softmax(logits, 1).masked_fill(~candidates, torch.inf).amin(1, keepdim=True)
    # Both shares are sigmoids of the same odds. A subtraction from one would lose the digits of the smaller share.
    odds = outside.amax(1, keepdim=True).log() - lowest
    both = torch.sigmoid(odds) * inside + torch.sigmoid(-odds) * outside
    # A full set has nothing outside: its second softmax is undefined, and not used.
    return torch.where(candidates.all(1, keepdim=True), inside, both)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over the batch of -Σ_j target_j log softmax(logits)_j."""
    return -(target * log_softmax(wide(logits), 1)).sum(1).mean()


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Mean over the batch of KL(target ‖ softmax(logits)), with 0 log 0 = 0."""
    return torch.xlogy(target, target).sum(1).mean() + soft_cross_entropy(logits, target)


def mixed_kl_divergence(target: Tensor, partner: Tensor, share: float, logits: Tensor) -> Tensor:
    """share · KL(target ‖ s) + (1 - share) · KL(partner ‖ s) for a mixture of two samples (Eq. 6 of PaPi)."""
    return share * kl_divergence(target, logits) + (1 - share) * kl_divergence(partner, logits)


def candidate_likelihood_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    """Mean over the batch of -log Σ_{j in candidates} softmax(logits)_j: some candidate is the true label."""
    return -_among(log_softmax(wide(logits), 1), candidates).logsumexp(1).mean()


def log_complement(logits: Tensor) -> Tensor:
    """log(1 - softmax(logits)_j) for each class j, `(B, K)`.

    1 - p loses all digits where p is near one. That is the case for the likeliest class alone: its complement is summed
    from the other classes. All others have p ≤ 1/2, where log1p is exact.
    """
    log_probability = log_softmax(wide(logits), 1)
    likeliest = one_hot(logits.argmax(1), logits.shape[1]).bool()
    others = log_probability.masked_fill(likeliest, -torch.inf).logsumexp(1, keepdim=True)
    # Masked before the logarithm, too: the gradient of log(0) would spoil the row even where it is not taken.
    return torch.where(likeliest, others, torch.log1p(-log_probability.exp().masked_fill(likeliest, 0.0)))


def non_candidate_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    """Mean over the batch of -Σ_{j not in candidates} log(1 - softmax(logits)_j); a full set adds nothing."""
    excluded = log_complement(logits)
    if candidates.dtype == torch.bool:
        return -excluded.masked_fill(candidates, 0.0).sum(1).mean()
    return -((1 - candidates) * excluded).sum(1).mean()


def leveraged_sigmoid(logits: Tensor, candidates: Tensor, weights: Tensor, beta: float) -> Tensor:
    """Mean over the batch of Σ_{candidates} w σ(-r) + β Σ_{others} w σ(r), with weights w `(B, K)` and logits r."""
    losses = torch.where(candidates, torch.sigmoid(-wide(logits)), beta * torch.sigmoid(wide(logits)))
    return (weights * losses).sum(1).mean()


def leveraged_cross_entropy(logits: Tensor, candidates: Tensor, weights: Tensor, beta: float) -> Tensor:
    """Mean over the batch of -Σ_{candidates} w log p - β Σ_{others} w log(1 - p), with p = softmax(logits)."""
    losses = torch.where(candidates, -log_softmax(wide(logits), 1), -beta * log_complement(logits))
    return (weights * losses).sum(1).mean()


def info_nce(query: Tensor, key: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Each query `(B, d)` has to find its own key `(B, d)` among the queue `(Q, d)`; all are unit vectors (MoCo)."""
    query, key, queue = wide(query), wide(key), wide(queue)
    own = (query * key).sum(1, keepdim=True)
    similarity = torch.cat([own, query @ queue.T], 1) / temperature
    return -log_softmax(similarity, 1)[:, 0].mean()


def supervised_contrastive(
    query: Tensor,
    key: Tensor,
    queue: Tensor,
    labels: Tensor,
    queue_labels: Tensor,
    temperature: float,
    rows: slice = slice(None),
) -> Tensor:
    """Each query `(B, d)` is drawn to all that share its label, among queries, keys `(B, d)` and queue `(Q, d)`.

    -log softmax of the similarities to all but the query itself, averaged over its positives, then over the batch.
    `labels` `(B,)` count for queries and keys alike, so each query has one positive at least: its own key. Only the
    queries in `rows` are averaged over; all the others are there to be compared with.
    """
    query = wide(query)
    others = torch.cat([query, wide(key), wide(queue)])
    itself = torch.eye(len(query), len(others), dtype=torch.bool, device=query.device)[rows]
    positive = (labels[rows, None] == torch.cat([labels, labels, queue_labels])) & ~itself
    similarity = (query[rows] @ others.T / temperature).masked_fill(itself, -torch.inf)
    attraction = log_softmax(similarity, 1).masked_fill(~positive, 0.0).sum(1)
    return -(attraction / positive.sum(1)).mean()


class Compared(NamedTuple):
    """What a contrastive loss compares: unit vectors, and the label and distribution that each of them carries."""

    features: Tensor  # (n, d)
    labels: Tensor  # (n,) int64
    beliefs: Tensor  # (n, K)


def weighted_contrastive(
    query: Compared, others: Compared, temperature: float, belief_temperature: float, rows: slice = slice(None)
) -> Tensor:
    """Each query is drawn to all that share its label, more strongly to those that believe alike (DIRK).

    -Σ_a w_a log softmax_a of the similarities to all but the query itself, averaged over the queries in `rows`. The
    weights w are the softmax, over the positives a, of the cosine between beliefs. Each query needs a positive among
    `others`: its own key.
    """
    columns = Compared(*(torch.cat(pair) for pair in zip(query, others, strict=True)))
    itself = torch.eye(len(query.labels), len(columns.labels), dtype=torch.bool, device=query.labels.device)[rows]
    similarity = wide(query.features)[rows] @ wide(columns.features).T / temperature
    positive = (query.labels[rows, None] == columns.labels) & ~itself
    agreement = normalize(wide(query.beliefs))[rows] @ normalize(wide(columns.beliefs)).T / belief_temperature
    weights = candidate_softmax(agreement, positive)
    # The weights sum to one, so the normaliser of the softmax stands alone.
    normaliser = similarity.masked_fill(itself, -torch.inf).logsumexp(1)
    return (normaliser - (weights * similarity).sum(1)).mean()


def balance_loss(probabilities: Tensor) -> Tensor:
    """-(1/K) Σ_k log p_k with p the mean of all rows `(B, K)`: least, log K, where all classes are equally frequent.

    A class counts as 1e-6 at least: one that is absent from a batch has no gradient.
    """
    return -wide(probabilities).mean(0).clamp(min=1e-6).log().mean()


def dirichlet_kl(alpha: Tensor) -> Tensor:
    """Mean over the batch of KL(Dirichlet(alpha) ‖ Dirichlet(1, …, 1)), with alpha `(B, K)` positive."""
    alpha = wide(alpha)
    total = alpha.sum(1, keepdim=True)
    normalisers = torch.lgamma(total[:, 0]) - torch.lgamma(alpha).sum(1) - math.lgamma(alpha.shape[1])
    return (normalisers + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total))).sum(1)).mean()
