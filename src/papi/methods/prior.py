"""What is known of a sample's candidates before the network looks at it: one place that every guess multiplies in.

People's votes, weights or the confusions of annotators say how likely each candidate is: e_n, a distribution over the
candidates of sample n. If the evidence e_n and the sample x_n are independent given the true label, Bayes' rule gives

    P(y = j | x_n, e_n) ∝ P(y = j | x_n) · P(e_n | y = j),

and with P(e_n | y = j) ∝ e_nj^a the guess of a method becomes softmax(logits)_j · e_nj^a, renormalised over the
candidates. It does so at every update, so what people said lasts; used at the start only, it is washed out within some
epochs. In logarithms a prior is a number added to each logit of a candidate: further sources (`methods.set_prior`) add
theirs.

The *strength* a says how far the evidence is to be trusted: 0 ignores it, 1 takes it as it is. `auto` finds it from the
data before each epoch. On the quarter of the images that the network was surest of, its answers ŷ, made without the
prior, stand for the truth, and a is the most likely value of

    log P(a) + Σ_n log( e_nŷ^a / Σ_j e_nj^a ),    with P(a) ∝ a exp(-a), whose mode is 1.

So if two votes against one are right nine times out of ten there, a makes them count nine to one. Images whose
candidates are all equally likely say nothing about a, and are not asked.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from papi import distributed
from papi.methods.losses import candidate_softmax, wide
from papi.methods.packed import Candidates, uniform_confidence
from papi.methods.set_prior import SetPrior
from papi.methods.state import Confidence
from papi.types import Batch, Progress

_SUREST = 0.25  # of the images that can tell how far to trust the evidence
_ASKED = 10_000  # at most: more would not change the strength
_HIGHEST = 64.0  # the strength is searched between 0 and this
_LEAST = 1e-30  # what a candidate counts at least: none is lost for good


class Prior(nn.Module):
    """Weights of the candidates that every guess multiplies in; nothing is known until something is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: GivenPrior | None = None
        self.sets: SetPrior | None = None

    def give(self, candidates: Candidates, shares: Tensor, strength: str) -> None:
        """Take in how likely each candidate is, `(N, K)`: rows sum to one, positive for each candidate.

        `strength` is auto or a number, by which the shares are raised to a power.
        """
        self.given = GivenPrior(candidates, shares, strength)

    def estimate(self) -> None:
        """Before an epoch: how far to trust it, from the answers of the epoch before."""
        if self.given is not None:
            self.given.estimate()

    @torch.no_grad()
    def weigh(self, batch: Batch, logits: Tensor, admitted: Tensor, progress: Progress) -> Tensor:
        """What each label counts in a guess `(B, K)`; just `admitted` while nothing is known.

        `admitted` are the candidates of the batch, as a mask or with what labels outside count (`methods.noise`). It
        takes note of the logits `(B, K)`, for the estimate before the next epoch.
        """
        known = []
        if self.given is not None:
            self.given.note(batch, logits)
            known.append(self.given.log_weights(self.given.shares[batch.index]))
        if self.sets is not None and self.sets.speaks(progress):
            known.append(self.sets.log_weights(batch.candidates))
        return weighed(batch.candidates, torch.stack(known).sum(0), admitted) if known else admitted

    def shares(self, index: Tensor | slice, candidates: Tensor) -> Tensor | None:
        """What is known of these samples with their candidates, as a distribution `(B, K)`; None if that is nothing."""
        return None if self.given is None else self.given.powered(self.given.shares[index], candidates)

    def of_others(self, shares: np.ndarray | None, candidates: Tensor) -> Tensor | None:
        """The same for samples that are not trained on, of which `shares` `(B, K)` were given; None if nothing was."""
        if self.given is None or shares is None:
            return None
        device = self.given.strength.device
        return self.given.powered(torch.from_numpy(shares).to(device), candidates.to(device))

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """What a row of the log says about it: the strength, where it is found, and how much the sets count."""
        found = {"prior_strength": self.given.strength} if self.given is not None and self.given.auto else {}
        if self.sets is None:
            return found
        return found | {"set_prior": self.sets.weight * self.sets.speaks(progress)}


class GivenPrior(nn.Module):
    """What people said about each sample, and how far it is to be trusted."""

    strength: Tensor  # ()
    answer: Tensor  # (N,) int64: the candidate that the network preferred when it last saw the sample
    certainty: Tensor  # (N,) how far it was ahead of the second; zero where the evidence prefers none

    def __init__(self, candidates: Candidates, shares: Tensor, strength: str) -> None:
        super().__init__()
        self.auto = strength == "auto"
        self.shares: Confidence = uniform_confidence(candidates, learned=False)
        self.shares.start_from(shares)
        self.register_buffer("strength", torch.tensor(1.0 if self.auto else float(strength)), persistent=self.auto)
        if self.auto:
            self.register_buffer("answer", torch.zeros(len(candidates), dtype=torch.int64))
            self.register_buffer("certainty", torch.zeros(len(candidates)))

    def log_weights(self, shares: Tensor) -> Tensor:
        """Shares `(B, K)` to the power of the strength, as logarithms; -∞ outside the candidates."""
        return torch.where(shares > 0, self.strength * shares.log(), -torch.inf)

    def powered(self, shares: Tensor, candidates: Tensor) -> Tensor:
        """Shares `(B, K)` to the power of the strength, as a distribution over the candidates."""
        return candidate_softmax(self.log_weights(shares), candidates)

    @torch.no_grad()
    def note(self, batch: Batch, logits: Tensor) -> None:
        """Take note of what the network alone says about the samples of a batch."""
        if not self.auto:
            return
        best = wide(logits).masked_fill(~batch.candidates, -torch.inf).topk(2)
        ahead = torch.where(_speaks(self.shares[batch.index]), best.values[:, 0] - best.values[:, 1], 0.0)
        part = distributed.locate(len(batch.index))
        index = part.gather(batch.index)
        self.answer[index] = part.gather(best.indices[:, 0])
        self.certainty[index] = part.gather(ahead.to(self.certainty.dtype))

    @torch.no_grad()
    def estimate(self) -> None:
        """Set the strength from the surest answers; it stays as it is as long as there are none."""
        if not self.auto:
            return
        asked = min(_ASKED, math.ceil(_SUREST * int((self.certainty > 0).sum())))
        if asked:
            surest = self.certainty.topk(asked).indices
            self.strength = fitted_strength(self.shares[surest], self.answer[surest]).to(self.strength)


def _speaks(shares: Tensor) -> Tensor:
    """Whether shares `(B, K)` prefer one candidate to another, `(B,) bool`."""
    lowest = torch.where(shares > 0, shares, torch.inf).amin(1)
    return shares.amax(1) > lowest * (1 + 1e-5)


def fitted_strength(shares: Tensor, answers: Tensor) -> Tensor:
    """The most likely strength () for shares `(n, K)` of samples whose true labels are the answers `(n,)`.

    The logarithm of the likelihood is concave: its slope falls, and where it is zero is found by halving an interval.
    """
    logs = torch.where(shares > 0, shares.double().log(), -torch.inf)
    known = logs.gather(1, answers[:, None]).sum()
    finite = logs.masked_fill(shares <= 0, 0.0)  # where the softmax below is zero
    low, high = logs.new_tensor(0.0), logs.new_tensor(_HIGHEST)
    for _ in range(50):
        middle = (low + high) / 2
        expected = ((middle * logs).softmax(1) * finite).sum()
        rising = 1 / middle - 1 + known - expected > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return (low + high) / 2


def weighed(inside: Tensor, log_weights: Tensor, admitted: Tensor) -> Tensor:
    """What each label counts `(B, K)`: the candidates `inside` by their weights, with mean one, others as `admitted`.

    The mean is one so that a label outside counts as much as before, compared with a candidate that is neither more nor
    less likely than the others.
    """
    counted = candidate_softmax(log_weights, inside) * inside.sum(1, keepdim=True)
    return torch.where(inside, counted.clamp(min=_LEAST), admitted.to(counted.dtype))
