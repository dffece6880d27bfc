"""What the methods share that can doubt candidate sets: how much a label outside the set still counts.

The candidate mask S becomes S + λ(1 - S), as in ALIM (Xu et al., NeurIPS 2023): with λ = 0 the sets are trusted, with
λ = 1 they are ignored. ALIM is told how often the truth is missing; here both numbers come from the network's answers:

- *Noise rate*: of the quarter of the images that the network is surest of, the share whose answer lies outside the set.
  Where it is that sure it is hardly ever wrong, so on sets that always hold the truth the share is close to zero. As
  long as these answers lie outside about as often as guesses would, they tell nothing, and the rate is zero.
- *Weight λ*: by Bayes' rule, the odds that the truth is missing, η / (1 - η), times the odds s / (K - s) that a set of
  mean size s has some other label of K for no reason.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from papi import distributed
from papi.errors import UserError
from papi.methods.base import Method
from papi.methods.config import MethodConfig
from papi.methods.packed import Candidates
from papi.networks import Network
from papi.types import Batch, Progress

_SUREST = 0.25
_GUESSING = 0.9  # of the share that guesses have outside: answers that have as much are no reason to doubt a set


@dataclass(frozen=True)
class TolerantConfig(MethodConfig):
    """Settings of every method that can doubt candidate sets."""

    noise_tolerance: str = "off"
    """What a label outside the candidates counts, for sets that may lack the true label: `off`, `auto` (found from the
    network's answers after each epoch), or a number from 0 (as off) to 1 (the sets are ignored)."""

    @property
    def packs_sets(self) -> bool:
        """Only while sets are trusted: doubt gives weight to labels outside them."""
        return self.noise_tolerance == "off"

    def __post_init__(self) -> None:
        if self.noise_tolerance in ("off", "auto"):
            return
        try:
            fits = 0 <= float(self.noise_tolerance) <= 1
        except ValueError:
            fits = False
        if not fits:
            got = self.noise_tolerance
            raise UserError(f"--option noise_tolerance must be off, auto or a number from 0 to 1; got {got}.")


class NoiseTolerance(nn.Module):
    """How much labels outside the candidates count, and what the answers of the last epoch say about that."""

    noise_rate: Tensor  # () share of sets that lack the true label
    weight: Tensor  # () λ
    certainty: Tensor  # (N,) as `signed_certainty` gives it; zero until an image is seen

    def __init__(self, candidates: Candidates, setting: str) -> None:
        super().__init__()
        self.auto = setting == "auto"
        self.fixed = 0.0 if setting in ("off", "auto") else float(setting)
        if self.auto:
            self.register_buffer("noise_rate", torch.tensor(0.0))
            self.register_buffer("weight", torch.tensor(0.0))
            self.register_buffer("certainty", torch.zeros(len(candidates)))

    @torch.no_grad()
    def estimate(self, candidates: Tensor, progress: Progress) -> None:
        """Before an epoch: set both numbers from the answers of the one before; `candidates` are of all `(N, K)`."""
        if self.auto and _answered(progress):
            self.noise_rate = missing_share(self.certainty, candidates)
            self.weight = outside_weight(self.noise_rate, candidates)

    @torch.no_grad()
    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """The candidates of a batch: their mask `(B, K) bool` while sets are trusted, else S + λ(1 - S) `(B, K)`.

        It takes note of the logits `(B, K)`, for the estimate before the next epoch.
        """
        if self.auto:
            part = distributed.locate(len(batch.index))
            certainty = signed_certainty(logits, batch.candidates).to(self.certainty.dtype)
            self.certainty[part.gather(batch.index)] = part.gather(certainty)
        if not _answered(progress) or not (self.auto or self.fixed):
            return batch.candidates
        return torch.where(batch.candidates, 1.0, self.weight if self.auto else self.fixed)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """What a row of the log says about it; nothing when off."""
        if self.auto:
            return {"noise_rate": self.noise_rate, "noise_tolerance": self.weight}
        return {"noise_tolerance": torch.tensor(self.fixed * _answered(progress))} if self.fixed else {}


def _answered(progress: Progress) -> bool:
    """Whether the network has answered the images once: no set can be doubted before."""
    return progress.epoch > 0


def signed_certainty(logits: Tensor, candidates: Tensor) -> Tensor:
    """How far the best label is ahead of the second, `(B,)`; negative where it is outside the candidates."""
    best = logits.float().topk(2)
    ahead = best.values[:, 0] - best.values[:, 1]
    return torch.where(candidates.gather(1, best.indices[:, :1])[:, 0], ahead, -ahead)


def missing_share(certainty: Tensor, candidates: Tensor) -> Tensor:
    """How many sets lack the truth, as the surest answers say: signed certainty `(N,)`, candidates `(N, K)` → ()."""
    surest = certainty.abs().topk(math.ceil(_SUREST * len(certainty))).indices
    outside = (certainty[surest] < 0).float().mean()
    guessed = 1 - candidates.float().mean()
    return torch.where(outside < _GUESSING * guessed, outside, 0.0)


def outside_weight(noise_rate: Tensor, candidates: Tensor) -> Tensor:
    """λ, what a label outside counts: at most 1.

    Given y, all sets of s labels with y are equally likely, and so are all without: C(K-1, s-1) and C(K-1, s) of them,
    of which the first is s / (K - s) of the second.
    """
    inside = candidates.float().mean()
    return (noise_rate / (1 - noise_rate) * inside / (1 - inside)).clamp(max=1)


class Tolerant(Method):
    """A method that can let labels outside the candidates into its guesses."""

    def __init__(self, network: Network, candidates: Candidates, config: TolerantConfig) -> None:
        super().__init__(network, candidates, config)
        self.tolerance = NoiseTolerance(candidates, config.noise_tolerance)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        if isinstance(self.candidates, Tensor):  # packed sets are never doubted
            self.tolerance.estimate(self.candidates, progress)
        return super().start_epoch(progress, batches)

    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """What each label of a batch counts in a guess: with the prior inside the sets, and the tolerance outside."""
        return self.prior.weigh(batch, logits, self.tolerance.admit(batch, logits, progress), progress)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """What a row of the log says about how sets are read: also how far they are doubted."""
        return self.tolerance.logs(progress) | super().logs(progress)
