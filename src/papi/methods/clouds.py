"""Disambiguation of candidates for fixed features, with one Gaussian per class and a shared covariance.

A linear classifier learns its boundaries only from the candidate sets. The distribution of the samples tells more,
since samples of a class form a cluster. With the confidence C `(N, K)` and features x_n,

    n_k = Σ_n C_nk,    μ_k = Σ_n C_nk x_n / n_k,    Σ = Σ_n x_n x_nᵀ / N - Σ_k n_k μ_k μ_kᵀ / N,

and the scores of a sample are x_nᵀ Σ⁻¹ μ_k - ½ μ_kᵀ Σ⁻¹ μ_k + log(n_k / N). Their softmax over its candidates is the
new confidence: one round of EM. Features may have as many columns as there are samples, so Σ is shrunk towards a
multiple of the identity.

The scores are linear in x, so they can also replace the weights of a linear classifier. As probabilities they are far
too certain, so they are first scaled to be as certain as the classifier that they replace.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from papi import distributed
from papi.methods.losses import candidate_softmax

SHRINKAGE = 0.3  # of the covariance; chosen on held-out photos (docs/photos.md)
_FEWEST = 1e-6  # minimum n_k, for classes without any confidence
_HIGHEST = 16.0  # the scale is searched between 0 and this

Rows = Callable[[], Iterable[tuple[Tensor, Tensor]]]
"""All samples of this process in order, in chunks: features `(n, d)` and the weight of each label `(n, K)`."""


@torch.no_grad()
def believed(rows: Rows, confidence: Tensor, rounds: int) -> Tensor:
    """The confidence `(N, K)` after `rounds` rounds. Features are read once per round and once before the first."""
    own = confidence[distributed.split(len(confidence)).own]
    products, sums = _products(rows, own)
    for _ in range(rounds):
        weight, bias = classifier(products, sums, confidence.double().sum(0), len(confidence))
        parts, sums = [], torch.zeros_like(sums)
        for features, counted in rows():
            parts.append(candidate_softmax(features.double() @ weight + bias, counted))
            sums += parts[-1].T @ features.double()
        sums = distributed.gather_rows(sums[None]).sum(0)
        confidence = distributed.gather_rows(torch.cat(parts)).to(confidence.dtype)
    return confidence


@torch.no_grad()
def fitted(rows: Rows, confidence: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
    """Weight `(K, d)` and bias `(K,)` of the Gaussians with this confidence `(N, K)`.

    Their softmax is as certain as `predicted`, the probabilities `(n, K)` of another classifier for the samples of this
    process.
    """
    products, sums = _products(rows, confidence[distributed.split(len(confidence)).own])
    weight, bias = classifier(products, sums, confidence.double().sum(0), len(confidence))
    scores = torch.cat([features.double() @ weight + bias for features, _ in rows()])
    scale = matching_scale(scores, predicted.double())
    return scale * weight.T, scale * bias


def matching_scale(scores: Tensor, predicted: Tensor) -> Tensor:
    """The scale a () that minimises the cross-entropy of softmax(a · scores) with `predicted`, both `(n, K)`.

    The cross-entropy is convex in a, so the zero of its derivative is found by bisection, over all processes.
    """
    scores = scores - scores.amax(1, keepdim=True)
    low, high = scores.new_tensor(0.0), scores.new_tensor(_HIGHEST)
    for _ in range(40):
        middle = (low + high) / 2
        slope = (((middle * scores).softmax(1) - predicted) * scores).sum()
        too_high = distributed.gather_rows(slope[None]).sum() > 0
        low, high = torch.where(too_high, low, middle), torch.where(too_high, middle, high)
    return (low + high) / 2


def classifier(products: Tensor, sums: Tensor, counts: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Weight `(d, K)` and bias `(K,)` from Σ x xᵀ `(d, d)`, Σ C x `(K, d)`, Σ C `(K,)` and N, all in float64."""
    counts = counts.clamp(min=_FEWEST)
    means = sums / counts[:, None]
    within = products / samples - (means.T * (counts / samples)) @ means
    spread = within.diagonal().mean().clamp(min=1e-12)
    identity = torch.eye(len(within), dtype=within.dtype, device=within.device)
    weight = torch.linalg.solve((1 - SHRINKAGE) * within + SHRINKAGE * spread * identity, means.T)
    return weight, (counts / samples).log() - (means * weight.T).sum(1) / 2


def _products(rows: Rows, confidence: Tensor) -> tuple[Tensor, Tensor]:
    """Σ x xᵀ `(d, d)` and Σ C x `(K, d)` over the samples of all processes, in float64."""
    products, sums, start = None, None, 0
    for features, _ in rows():
        belief = confidence[start : start + len(features)].double()
        start += len(features)
        square, part = (features.T @ features).double(), belief.T @ features.double()
        products = square if products is None else products + square
        sums = part if sums is None else sums + part
    assert products is not None
    assert sums is not None
    return distributed.gather_rows(products[None]).sum(0), distributed.gather_rows(sums[None]).sum(0)
