"""Tolerance for candidate sets without the true label: the weight of labels outside the set.

The candidate mask S becomes S + λ(1 - S), as in ALIM (Xu et al., NeurIPS 2023): with λ = 0 the sets are trusted, with
λ = 1 they are ignored. ALIM is given the noise rate; here both numbers are estimated from the network's predictions:

- *Noise rate* η: among the quarter of the images with the most confident predictions, the fraction with a prediction
  outside the set. Such predictions are hardly ever wrong, so the fraction is close to zero if the sets always contain
  the true label. While these predictions lie outside the sets about as often as random ones would, the rate is zero.
- *Weight λ*: by Bayes' rule, the odds η / (1 - η) that the true label is missing, times the odds s / (K - s) that a set
  of mean size s contains a given wrong label of K classes.
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
_GUESSING = 0.9  # of the share outside for random predictions; above this, predictions say nothing about the noise


@dataclass(frozen=True)
class TolerantConfig(MethodConfig):
    """Settings of every method that tolerates candidate sets without the true label."""

    noise_tolerance: str = "off"
    """Weight of labels outside the candidates, for sets that may lack the true label: `off`, `auto` (estimated from the
    network's predictions after each epoch), or a number from 0 (off) to 1 (the sets are ignored)."""

    @property
    def packs_sets(self) -> bool:
        """Only without noise tolerance, which gives weight to labels outside the sets."""
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
    """The weight of labels outside the candidates, and the predictions of the last epoch that it is estimated from."""

    noise_rate: Tensor  # () fraction of sets that lack the true label
    weight: Tensor  # () λ
    certainty: Tensor  # (N,) from `signed_certainty`; zero until an image is seen

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
        """Before an epoch, set η and λ from the predictions of the previous one; `candidates` are all `(N, K)`."""
        if self.auto and _answered(progress):
            self.noise_rate = missing_share(self.certainty, candidates)
            self.weight = outside_weight(self.noise_rate, candidates)

    @torch.no_grad()
    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """The candidates of a batch: the mask `(B, K) bool` while sets are trusted, else S + λ(1 - S) `(B, K)`.

        The logits `(B, K)` are recorded for the estimate before the next epoch.
        """
        if self.auto:
            certainty = signed_certainty(logits, batch.candidates).to(self.certainty.dtype)
            index, certainty = distributed.locate(len(batch.index)).gather_all(batch.index, certainty)
            self.certainty[index] = certainty
        if not _answered(progress) or not (self.auto or self.fixed):
            return batch.candidates
        return torch.where(batch.candidates, 1.0, self.weight if self.auto else self.fixed)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """Log values; empty when off."""
        if self.auto:
            return {"noise_rate": self.noise_rate, "noise_tolerance": self.weight}
        return {"noise_tolerance": torch.tensor(self.fixed * _answered(progress))} if self.fixed else {}


def _answered(progress: Progress) -> bool:
    """Whether the network has predicted every image once; before that, all sets are trusted."""
    return progress.epoch > 0


def signed_certainty(logits: Tensor, candidates: Tensor) -> Tensor:
    """The margin of the best label over the second, `(B,)`; negative if the best is outside the candidates."""
    best = logits.float().topk(2)
    ahead = best.values[:, 0] - best.values[:, 1]
    return torch.where(candidates.gather(1, best.indices[:, :1])[:, 0], ahead, -ahead)


def missing_share(certainty: Tensor, candidates: Tensor) -> Tensor:
    """Noise rate () from the most confident predictions: signed certainty `(N,)`, candidates `(N, K)`."""
    surest = certainty.abs().topk(math.ceil(_SUREST * len(certainty))).indices
    outside = (certainty[surest] < 0).float().mean()
    guessed = 1 - candidates.float().mean()
    return torch.where(outside < _GUESSING * guessed, outside, 0.0)


def outside_weight(noise_rate: Tensor, candidates: Tensor) -> Tensor:
    """λ, the weight of a label outside the set: at most 1.

    Given y, all sets of s labels that contain y are equally likely, and so are all that do not. There are C(K-1, s-1)
    and C(K-1, s) of them, with the ratio s / (K - s).
    """
    inside = candidates.float().mean()
    return (noise_rate / (1 - noise_rate) * inside / (1 - inside)).clamp(max=1)


class Tolerant(Method):
    """A method that can give weight to labels outside the candidates."""

    def __init__(self, network: Network, candidates: Candidates, config: TolerantConfig) -> None:
        super().__init__(network, candidates, config)
        self.tolerance = NoiseTolerance(candidates, config.noise_tolerance)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        if isinstance(self.candidates, Tensor):  # packed sets have no noise tolerance
            self.tolerance.estimate(self.candidates, progress)
        return super().start_epoch(progress, batches)

    def admit(self, batch: Batch, logits: Tensor, progress: Progress) -> Tensor:
        """The weight of each label of a batch: from the prior inside the sets, from the tolerance outside."""
        return self.prior.weigh(batch, logits, self.tolerance.admit(batch, logits, progress), progress)

    def logs(self, progress: Progress) -> dict[str, Tensor]:
        """Log values of the prior and of the noise tolerance."""
        return self.tolerance.logs(progress) | super().logs(progress)
