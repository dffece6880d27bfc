"""The prior over a sample's candidates. Every prediction over the candidates is multiplied by it.

Votes, weights or annotators' confusion matrices tell how likely each candidate is: e_n, a distribution over the
candidates of sample n. If the evidence e_n and the sample x_n are independent given the true label, Bayes' rule gives

    P(y = j | x_n, e_n) ∝ P(y = j | x_n) · P(e_n | y = j),

and with P(e_n | y = j) ∝ e_nj^a a method's prediction becomes softmax(logits)_j · e_nj^a, renormalised over the
candidates. The prior is applied at every update; used only at the start, it loses its effect within a few epochs. In
logarithms, a prior is a number added to each candidate's logit, and other sources (`methods.set_prior`) add theirs.

The *strength* a is how far the evidence is trusted: 0 ignores it, 1 uses it unchanged. `auto` estimates it from the
data before each epoch. On the quarter of the images with the most confident predictions, the predictions ŷ, made
without the prior, are taken as the true labels, and a maximises

    log P(a) + Σ_n log( e_nŷ^a / Σ_j e_nj^a ),    with P(a) ∝ a exp(-a), whose mode is 1.

So if two votes against one are right nine times out of ten there, a makes them count nine to one. Images whose
candidates are all equally likely carry no information about a and are left out.
"""

import math
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

from papi import distributed
from papi.methods.losses import candidate_softmax, wide
from papi.methods.packed import Candidates, uniform_confidence
from papi.methods.set_prior import SetPrior
from papi.methods.state import Confidence
from papi.types import Batch, Progress

_SUREST = 0.25  # fraction of the informative images used to estimate the strength
_ASKED = 10_000  # maximum number of these images: more would not change the strength
_HIGHEST = 64.0  # the strength is searched between 0 and this
_LEAST = 1e-30  # minimum weight of a candidate, so that none is ruled out for good


class Prior(nn.Module):
    """Weights of the candidates, multiplied into every prediction. Without any source, the prior has no effect."""

    def __init__(self) -> None:
        super().__init__()
        self.given: GivenPrior | None = None
        self.sets: SetPrior | None = None

    def give(self, candidates: Candidates, shares: Tensor, strength: str) -> None:
        """Set how likely each candidate is, `(N, K)`: rows sum to one, positive for each candidate.

        `strength` is auto or a number, the power to which the shares are raised.
        """
        self.given = GivenPrior(candidates, shares, strength)

    def estimate(self) -> None:
        """Before an epoch, estimate the strength from the predictions of the previous epoch."""
        if self.given is not None:
            self.given.estimate()

    @torch.no_grad()
    def weigh(self, batch: Batch, logits: Tensor, admitted: Tensor, progress: Progress) -> Tensor:
        """The weight of each label in a prediction, `(B, K)`; `admitted` itself if there is no prior.

        `admitted` are the candidates of the batch, as a mask or with weights of labels outside (`methods.noise`). The
        logits `(B, K)` are recorded for the estimate before the next epoch.
        """
        known = []
        if self.given is not None:
            self.given.note(batch, logits)
            known.append(self.given.log_weights(self.given.shares[batch.index]))
        if self.sets is not None and self.sets.speaks(progress) and not self.sets.silent:
            known.append(self.sets.log_weights(batch.candidates))
        return weighed(batch.candidates, reduce(torch.add, known), admitted) if known else admitted

    def shares(self, index: Tensor | slice, candidates: Tensor) -> Tensor | None:
        """The prior of these samples over their candidates, as a distribution `(B, K)`; None if none was given."""
        return None if self.given is None else self.given.powered(self.given.shares[index], candidates)

    def of_others(self, shares: np.ndarray | None, candidates: Tensor) -> Tensor | None:
        """The same for samples outside the training set, with given `shares` `(B, K)`; None if none were given."""
        if self.given is None or shares is None:
            return None
        device = self.given.strength.device
        return self.given.powered(torch.from_numpy(shares).to(device), candidates.to(device))

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """Log values: the strength, if it is estimated, and the weight of the set prior."""
        found = {"prior_strength": self.given.strength} if self.given is not None and self.given.auto else {}
        if self.sets is None:
            return found
        return found | {"set_prior": self.sets.weight * self.sets.speaks(progress)}


class GivenPrior(nn.Module):
    """The prior given with the data for each sample, and how far it is trusted."""

    strength: Tensor  # ()
    answer: Tensor  # (N,) int64: the network's best candidate when it last saw the sample
    certainty: Tensor  # (N,) its margin over the second best; zero where the evidence prefers no candidate

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
        """Record the network's predictions for a batch, without the prior."""
        if not self.auto:
            return
        best = wide(logits).masked_fill(~batch.candidates, -torch.inf).topk(2)
        ahead = torch.where(_speaks(self.shares[batch.index]), best.values[:, 0] - best.values[:, 1], 0.0)
        part = distributed.locate(len(batch.index))
        index, answer, ahead = part.gather_all(batch.index, best.indices[:, 0], ahead)
        self.answer[index], self.certainty[index] = answer, ahead.to(self.certainty.dtype)

    @torch.no_grad()
    def estimate(self) -> None:
        """Set the strength from the most confident predictions; without any, leave it unchanged."""
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

    The log-posterior is concave, so the zero of its derivative is found by bisection.
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
    """The weight of each label, `(B, K)`: weights with mean one for the candidates `inside`, `admitted` for the others.

    With mean one, a label outside keeps its weight relative to a candidate of average likelihood.
    """
    counted = candidate_softmax(log_weights, inside) * inside.sum(1, keepdim=True)
    return torch.where(inside, counted.clamp(min=_LEAST), admitted.to(counted.dtype))
