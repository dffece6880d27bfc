"""A prior over the candidates, estimated from how often labels occur together in candidate sets.

By default, methods treat all candidates of an image as equally likely a priori. This does not hold for sets that come
from visual similarity, annotators or taxonomies: nearly all boots have sneaker as a candidate, but far fewer sneakers
have boot. With

    M_ij = P(j in S | y = i),

and candidates that are independent of each other given the true label, the likelihood of a set is

    P(S | y = i) = Π_{j ≠ i} M_ij^{S_j} (1 - M_ij)^{1 - S_j}    for i in S.

The network's prediction softmax(logits)_i includes the share π_i of class i in the current confidence, which is too
large for a label that often replaces another. With equally frequent classes, Bayes' rule gives the prediction
softmax(logits)_i · w_i with w_i = P(S | y = i) / π_i, renormalised over the candidates.

M and π are estimated from the confidence C `(N, K)` before each epoch, at the cost of one matrix product:

    M = (Cᵀ S + 1) / (Cᵀ 1 + 2),    π = Cᵀ 1 / N.

Three safeguards limit the prior. *Evidence*: if sets do not depend on the class, all M_ij are equal up to chance. With
n_i = Σ_n C_ni and m the mean of M_ij, X² = Σ_{i ≠ j} n_i (M_ij - m)² / (m (1 - m)) is then about the number of terms,
and log w is multiplied by max(0, 1 - 2 · terms / X²): zero for uniform sets, close to one for others (James-Stein
shrinkage, doubled to be conservative). *Fading*: set and image are not independent given the class, and the network
soon predicts better, so log w falls linearly to zero over the first part of the run. *Balance*: every image of a class
has that class among its candidates, so with equally frequent classes each label is a candidate of at least N / K
images. If a label is a candidate of significantly fewer, the classes are not equally frequent and the division by π is
wrong: `auto` then turns the prior off. This happens for real tables whose candidates come from one scene or recording,
where predictions got much worse without this test (docs/results.md).
"""

import math

import torch
from torch import Tensor, nn

from papi.methods.packed import Candidates
from papi.methods.state import Confidence
from papi.types import Progress

_AUTO = 1.0
_FADED = 0.5  # fraction of the run after which the prior has no effect
_ROWS = 16_384  # rows of the confidence unpacked at a time
_CAREFUL = 2.0
_CLOSEST = 1e-3  # distance of M_ij from 0 and 1, so that no single set is decisive
_SIGNIFICANT = 3.0  # standard deviations below an equal share


class SetPrior(nn.Module):
    """Co-occurrence of labels, estimated from the confidence, and the weights it gives the labels of each set."""

    log_odds: Tensor  # (K, K) log M_ij - log(1 - M_ij), and zero on the diagonal
    offset: Tensor  # (K,) Σ_{j ≠ i} log(1 - M_ij) - log π_i
    evidence: Tensor  # () how strongly sets depend on the class; zero if classes cannot be equally frequent
    weight: Tensor  # () evidence · strength · fading

    def __init__(self, classes: int, strength: str) -> None:
        super().__init__()
        self.auto = strength == "auto"
        self.strength = _AUTO if self.auto else float(strength)
        self.register_buffer("log_odds", torch.zeros(classes, classes))
        self.register_buffer("offset", torch.zeros(classes))
        self.register_buffer("evidence", torch.tensor(0.0))
        self.register_buffer("weight", torch.tensor(0.0))

    @torch.no_grad()
    def estimate(self, candidates: Candidates, confidence: Confidence, progress: Progress) -> None:
        """Update the prior before an epoch, from the confidence in all candidate sets."""
        if not self.speaks(progress):
            return
        together, totals = standing_beside(candidates, confidence)
        matrix = (together + 1) / (totals[:, None] + 2)
        evidence = class_dependence(matrix, totals)
        if self.auto:
            evidence = evidence * may_be_balanced(together.sum(0), len(candidates))
        matrix = matrix.clamp(_CLOSEST, 1 - _CLOSEST)
        absent = torch.log1p(-matrix).fill_diagonal_(0)
        self.log_odds = (matrix.log() - absent).fill_diagonal_(0).to(self.log_odds)
        shares = (totals + 1) / (totals.sum() + len(totals))
        self.offset = (absent.sum(1) - shares.log()).to(self.offset)
        self.evidence = evidence.to(self.evidence)
        self.weight = self.evidence * self.strength * _fading(progress)

    def speaks(self, progress: Progress) -> bool:
        """Whether the prior still has an effect at this point of the run."""
        return self.strength > 0 and _fading(progress) > 0

    @property
    def silent(self) -> bool:
        """Whether the prior is known to have no effect: its weight is zero, as for uniform sets.

        Reading the weight from a GPU would make every step wait, so there the prior never counts as silent.
        """
        return self.weight.is_cpu and float(self.weight) == 0

    def log_weights(self, candidates: Tensor) -> Tensor:
        """log w of sets `(B, K) bool`, for every label, `(B, K)`."""
        return self.weight * (candidates.to(self.offset.dtype) @ self.log_odds.T + self.offset)


def _fading(progress: Progress) -> float:
    """Factor that falls from 1 to 0 over the first part of the run, constant within an epoch."""
    return max(0.0, 1 - progress.epoch / (_FADED * progress.epochs))


def standing_beside(candidates: Candidates, confidence: Confidence) -> tuple[Tensor, Tensor]:
    """Cᵀ S `(K, K)` and Cᵀ 1 `(K,)`, in chunks of rows, so that packed sets are never unpacked all at once."""
    together, totals = [], []
    for start in range(0, len(candidates), _ROWS):
        rows = confidence[start : start + _ROWS]
        together.append(rows.T @ candidates[start : start + _ROWS].to(rows.dtype))
        totals.append(rows.sum(0))
    return torch.stack(together).sum(0), torch.stack(totals).sum(0)


def class_dependence(matrix: Tensor, totals: Tensor) -> Tensor:
    """How strongly M `(K, K)` differs from a constant, () from 0 to 1, where Cᵀ 1 `(K,)` images support each row."""
    classes = len(totals)
    others = 1 - torch.eye(classes, dtype=matrix.dtype, device=matrix.device)
    counted = others * totals[:, None]
    mean = (counted * matrix).sum() / counted.sum()
    squares = (counted * (matrix - mean).square()).sum() / (mean * (1 - mean))
    terms = classes * (classes - 1)
    return (1 - _CAREFUL * terms / squares).clamp(min=0)


def may_be_balanced(appearances: Tensor, count: int) -> Tensor:
    """Whether classes can be equally frequent among `count` images, () bool, given how often each label is a candidate.

    The number of images of a class is then binomial with mean N / K. `appearances` `(K,)` cannot be smaller than it.
    """
    share = count / len(appearances)
    return (appearances >= share - _SIGNIFICANT * math.sqrt(share)).all()
