"""What the candidate sets themselves say: how often label j stands beside label i differs from class to class.

All methods here take the candidates of an image for equally likely before they look at it. They are not where sets come
from looks, people or taxonomies: sneakers are a candidate of nearly all boots, boots of far fewer sneakers. With

    M_ij = P(j in S | y = i),

and candidates that come in independently of each other given the true label, a set has the likelihood

    P(S | y = i) = Π_{j ≠ i} M_ij^{S_j} (1 - M_ij)^{1 - S_j}    for i in S.

The network's answer softmax(logits)_i counts a class by its share π_i of what is believed so far, in which a label that
covers another has too much. With equally frequent classes, Bayes' rule makes the guess softmax(logits)_i · w_i with
w_i = P(S | y = i) / π_i, renormalised over the candidates.

M and π come from the confidence C `(N, K)` before each epoch, at the price of one product of matrices:

    M = (Cᵀ S + 1) / (Cᵀ 1 + 2),    π = Cᵀ 1 / N.

Two things keep it from doing harm. *Evidence*: where sets are made without regard to the class, all M_ij are the
same but for chance. With n_i = Σ_n C_ni and m their mean, X² = Σ_{i ≠ j} n_i (M_ij - m)² / (m (1 - m)) is then about
as large as the number of terms, and log w is multiplied by max(0, 1 - 2 · terms / X²): zero for uniform sets, close to
one for others (the shrinkage of James and Stein, doubled to be careful). *Fading*: sets and image are not independent
given the class, and the network soon knows better, so log w falls linearly to zero over a part of the run.

What it does not notice: candidates that come in groups, as the names of all people in a scene do. They are far from
independent, the product counts the same evidence many times, and guesses get worse (Lost, docs/results.md).
"""

import torch
from torch import Tensor, nn

from papi.methods.packed import Candidates
from papi.methods.state import Confidence
from papi.types import Progress

_AUTO = 1.0
_FADED = 0.5  # of the run: from there on sets are silent
_ROWS = 16_384  # of the confidence that are unfolded at a time
_CAREFUL = 2.0
_CLOSEST = 1e-3  # to 0 and to 1: one set more or less must not decide alone


class SetPrior(nn.Module):
    """Which labels stand in for which, as the confidence says, and what that says about each set."""

    log_odds: Tensor  # (K, K) log M_ij - log(1 - M_ij), and zero on the diagonal
    offset: Tensor  # (K,) Σ_{j ≠ i} log(1 - M_ij) - log π_i
    weight: Tensor  # () evidence · strength · fading

    def __init__(self, classes: int, strength: str) -> None:
        super().__init__()
        self.strength = _AUTO if strength == "auto" else float(strength)
        self.register_buffer("log_odds", torch.zeros(classes, classes))
        self.register_buffer("offset", torch.zeros(classes))
        self.register_buffer("weight", torch.tensor(0.0))

    @torch.no_grad()
    def estimate(self, candidates: Candidates, confidence: Confidence, progress: Progress) -> None:
        """Before an epoch, from the confidence in all candidate sets."""
        if not self.speaks(progress):
            return
        together, totals = standing_beside(candidates, confidence)
        matrix = (together + 1) / (totals[:, None] + 2)
        evidence = class_dependence(matrix, totals)
        matrix = matrix.clamp(_CLOSEST, 1 - _CLOSEST)
        absent = torch.log1p(-matrix).fill_diagonal_(0)
        self.log_odds = (matrix.log() - absent).fill_diagonal_(0).to(self.log_odds)
        shares = (totals + 1) / (totals.sum() + len(totals))
        self.offset = (absent.sum(1) - shares.log()).to(self.offset)
        self.weight = (evidence * self.strength * _fading(progress)).to(self.weight)

    def speaks(self, progress: Progress) -> bool:
        """Whether it still counts at this point of the run."""
        return self.strength > 0 and _fading(progress) > 0

    def log_weights(self, candidates: Tensor) -> Tensor:
        """log w of sets `(B, K) bool`, for every label, `(B, K)`."""
        return self.weight * (candidates.to(self.offset.dtype) @ self.log_odds.T + self.offset)


def _fading(progress: Progress) -> float:
    """From 1 to 0 over a part of the run, constant within an epoch."""
    return max(0.0, 1 - progress.epoch / (_FADED * progress.epochs))


def standing_beside(candidates: Candidates, confidence: Confidence) -> tuple[Tensor, Tensor]:
    """Cᵀ S `(K, K)` and Cᵀ 1 `(K,)`, from some rows at a time: packed ones are never unfolded all at once."""
    together, totals = [], []
    for start in range(0, len(candidates), _ROWS):
        rows = confidence[start : start + _ROWS]
        together.append(rows.T @ candidates[start : start + _ROWS].to(rows.dtype))
        totals.append(rows.sum(0))
    return torch.stack(together).sum(0), torch.stack(totals).sum(0)


def class_dependence(matrix: Tensor, totals: Tensor) -> Tensor:
    """How far M `(K, K)` differs from one number for all, () from 0 to 1, with Cᵀ 1 `(K,)` images behind each row."""
    classes = len(totals)
    others = 1 - torch.eye(classes, dtype=matrix.dtype, device=matrix.device)
    counted = others * totals[:, None]
    mean = (counted * matrix).sum() / counted.sum()
    squares = (counted * (matrix - mean).square()).sum() / (mean * (1 - mean))
    terms = classes * (classes - 1)
    return (1 - _CAREFUL * terms / squares).clamp(min=0)
