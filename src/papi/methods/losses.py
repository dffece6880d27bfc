"""Losses and targets of partial-label learning: pure functions of logits `(B, K)` and candidate masks `(B, K) bool`.

If sets may lack the true label, `candidates` are weights from 0 to 1 instead of a mask (`methods.noise`).

All values are computed with log-softmax in float32 or wider, so that they stay finite for logits of any size.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize


def wide(values: Tensor) -> Tensor:
    """Convert half precision, which is too coarse for probabilities, to float32."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def top_label(scores: Tensor) -> Tensor:
    """The position of the highest score in each row `(B,)`, the first of equal ones.

    With hundreds of classes, `max` finds it in two thirds of the time of `argmax`.
    """
    return scores.max(1).indices


def _among(logits: Tensor, candidates: Tensor) -> Tensor:
    """Logits plus the logarithm of each label's weight: -∞ outside the candidates."""
    if candidates.dtype == torch.bool:
        return torch.where(candidates, logits, -torch.inf)
    positive = candidates > 0
    # Zeros are replaced before the logarithm: on a CPU, log(0) takes six times as long as other values.
    return torch.where(positive, logits + torch.where(positive, candidates, 1.0).log(), -torch.inf)


def candidate_softmax(logits: Tensor, candidates: Tensor) -> Tensor:
    """Return the softmax over the candidates: zero elsewhere, rows sum to one.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.losses import candidate_softmax
    >>> candidate_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    return _among(wide(logits), candidates).softmax(1)


def candidate_argmax(scores: Tensor, candidates: Tensor) -> Tensor:
    """Return the candidate with the highest score in each row, `(B,)`.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.losses import candidate_argmax
    >>> candidate_argmax(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[True, True, False]])).tolist()
    [1]
    """
    return top_label(_among(scores, candidates))


def candidate_prediction(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """`candidate_softmax` and `candidate_argmax` in one go, `(B, K)` and `(B,)`."""
    inside = _among(wide(logits), candidates)
    return inside.softmax(1), top_label(inside)


def rectified(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax rescaled inside and outside the candidates, so that no other label is above the lowest candidate (DIRK).

    Proportions on each side are preserved, and rows sum to one. With u = softmax(logits) and c the highest share in the
    softmax over the other labels alone, the candidates together get c / (c + min u), where the minimum is over the
    candidates, and the others the rest. A full set keeps its softmax.
    """
    logits = wide(logits)
    inside, outside = candidate_softmax(logits, candidates), candidate_softmax(logits, ~candidates)
    lowest = log_softmax(logits, 1).masked_fill(~candidates, torch.inf).amin(1, keepdim=True)
    # Both shares are sigmoids of the same log-odds. Subtracting from one would lose the digits of the smaller share.
    odds = outside.amax(1, keepdim=True).log() - lowest
    both = torch.sigmoid(odds) * inside + torch.sigmoid(-odds) * outside
    # A full set has no labels outside: its second softmax is undefined and not used.
    return torch.where(candidates.all(1, keepdim=True), inside, both)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the mean over the batch of -Σ_j target_j log softmax(logits)_j.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.losses import soft_cross_entropy
    >>> round(soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5, 0.5]])).item(), 4)
    0.6931
    """
    return -(target * log_softmax(wide(logits), 1)).sum(1).mean()


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Return the mean over the batch of KL(target ‖ softmax(logits)), with 0 log 0 = 0.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.losses import kl_divergence
    >>> round(abs(kl_divergence(torch.tensor([[0.5, 0.5]]), torch.zeros(1, 2)).item()), 4)
    0.0
    """
    return torch.xlogy(target, target).sum(1).mean() + soft_cross_entropy(logits, target)


def mixed_kl_divergence(target: Tensor, partner: Tensor, share: float, logits: Tensor) -> Tensor:
    """share · KL(target ‖ s) + (1 - share) · KL(partner ‖ s) for a mixture of two samples (Eq. 6 of PaPi)."""
    if share == 1:  # not a mixture
        return kl_divergence(target, logits)
    return share * kl_divergence(target, logits) + (1 - share) * kl_divergence(partner, logits)


def candidate_likelihood_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    """Return the mean over the batch of -log Σ_{j in candidates} softmax(logits)_j: some candidate is the true label.

    Examples
    --------
    >>> import torch
    >>> from papi.methods.losses import candidate_likelihood_loss
    >>> round(candidate_likelihood_loss(torch.zeros(1, 4), torch.tensor([[True, True, False, False]])).item(), 4)
    0.6931
    """
    return -_among(log_softmax(wide(logits), 1), candidates).logsumexp(1).mean()


def log_complement(logits: Tensor) -> Tensor:
    """log(1 - softmax(logits)_j) for each class j, `(B, K)`.

    1 - p loses all digits if p is close to one. This can only happen for the most likely class, so its complement is
    the sum over the other classes. All others have p ≤ 1/2, where log1p is accurate.
    """
    log_probability = log_softmax(wide(logits), 1)
    likeliest = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, top_label(logits)[:, None], True)
    others = log_probability.masked_fill(likeliest, -torch.inf).logsumexp(1, keepdim=True)
    # Masked before the logarithm, too: the gradient of log(0) would make the row NaN even where it is not selected.
    return torch.where(likeliest, others, torch.log1p(-log_probability.exp().masked_fill(likeliest, 0.0)))


def non_candidate_loss(logits: Tensor, candidates: Tensor) -> Tensor:
    """Mean over the batch of -Σ_{j not in candidates} log(1 - softmax(logits)_j); zero for a full set."""
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
    """Contrast the key `(B, d)` of each query `(B, d)` with the queue `(Q, d)`; all are unit vectors (MoCo)."""
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
    """Pull each query `(B, d)` towards all queries, keys `(B, d)` and queue entries `(Q, d)` with its label.

    -log softmax of the similarities to all but the query itself, averaged over its positives, then over the batch.
    `labels` `(B,)` apply to queries and keys, so each query has at least one positive: its own key. Only the queries
    in `rows` are averaged over; the others only serve for comparison.
    """
    query = wide(query)
    others = torch.cat([query, wide(key), wide(queue)])
    itself = torch.eye(len(query), len(others), dtype=torch.bool, device=query.device)[rows]
    positive = (labels[rows, None] == torch.cat([labels, labels, queue_labels])) & ~itself
    similarity = (query[rows] @ others.T / temperature).masked_fill(itself, -torch.inf)
    attraction = log_softmax(similarity, 1).masked_fill(~positive, 0.0).sum(1)
    return -(attraction / positive.sum(1)).mean()


class Compared(NamedTuple):
    """Unit vectors that a contrastive loss compares, each with a label and a distribution over labels."""

    features: Tensor  # (n, d)
    labels: Tensor  # (n,) int64
    beliefs: Tensor  # (n, K)


def weighted_contrastive(
    query: Compared, others: Compared, temperature: float, belief_temperature: float, rows: slice = slice(None)
) -> Tensor:
    """Pull each query towards all samples with its label, more strongly if their beliefs are similar (DIRK).

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
    # The weights sum to one, so the normaliser of the softmax has no factor.
    normaliser = similarity.masked_fill(itself, -torch.inf).logsumexp(1)
    return (normaliser - (weights * similarity).sum(1)).mean()


def balance_loss(probabilities: Tensor) -> Tensor:
    """-(1/K) Σ_k log p_k with p the mean of all rows `(B, K)`. Its minimum, log K, is reached at equal frequencies.

    p_k is at least 1e-6, so a class that is absent from a batch has no gradient.
    """
    return -wide(probabilities).mean(0).clamp(min=1e-6).log().mean()


def dirichlet_kl(alpha: Tensor) -> Tensor:
    """Mean over the batch of KL(Dirichlet(alpha) ‖ Dirichlet(1, …, 1)), with alpha `(B, K)` positive."""
    alpha = wide(alpha)
    total = alpha.sum(1, keepdim=True)
    normalisers = torch.lgamma(total[:, 0]) - torch.lgamma(alpha).sum(1) - math.lgamma(alpha.shape[1])
    return (normalisers + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total))).sum(1)).mean()
