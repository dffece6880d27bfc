"""Losses and targets of partial-label learning: pure functions of logits `(B, K)` and candidate masks `(B, K) bool`.

Everything is computed through log-softmax and in float32 or wider, so that logits of any size stay finite.
"""

import torch
from torch import Tensor
from torch.nn.functional import log_softmax


def _wide(values: Tensor) -> Tensor:
    """Half precision is too coarse for probabilities: float32 at least."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def candidate_softmax(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax over the candidates alone: zero elsewhere, rows sum to one."""
    return _wide(logits).masked_fill(~candidates, -torch.inf).softmax(1)


def candidate_argmax(scores: Tensor, candidates: Tensor) -> Tensor:
    """The best-scored candidate of each row, `(B,)`."""
    return scores.masked_fill(~candidates, -torch.inf).argmax(1)


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over the batch of -Σ_j target_j log softmax(logits)_j."""
    return -(target * log_softmax(logits, 1)).sum(1).mean()


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Mean over the batch of KL(target ‖ softmax(logits)), with 0 log 0 = 0."""
    return torch.xlogy(target, target).sum(1).mean() + soft_cross_entropy(logits, target)


def mixed_kl_divergence(target: Tensor, partner: Tensor, share: float, logits: Tensor) -> Tensor:
    """share · KL(target ‖ s) + (1 - share) · KL(partner ‖ s) for a mixture of two samples (Eq. 6 of PaPi)."""
    return share * kl_divergence(target, logits) + (1 - share) * kl_divergence(partner, logits)
