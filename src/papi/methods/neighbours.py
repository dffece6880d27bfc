"""Neighbour votes: the k nearest samples decide, then a network learns (PL-KNN; Hüllermeier & Beringer, IDA 2005).

Neighbouring samples mostly share their true label, so it is in most of their candidate sets, and a wrong label only in
some. The nearest neighbours of a sample vote for its candidates with their sets. The normalised votes are its soft
label, which is computed once before training. The network is trained on it with cross-entropy.

Symbols: k neighbours, w weight of a neighbour, B ballot of a neighbour, V votes, g power, v target, τ temperature.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from papi import distributed
from papi.errors import UserError
from papi.methods.losses import soft_cross_entropy, wide
from papi.methods.one_view import OneView, OneViewConfig
from papi.methods.options import require_not_negative, require_positive
from papi.methods.packed import Candidates, uniform_confidence
from papi.methods.ranges import Among, Between
from papi.methods.state import Confidence, Neighbours
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput

_ENTRIES = 2**22  # size of the largest temporary array
_SAME_PLACE = 1e-6  # a sum of distances below this means that all neighbours coincide with the sample


@dataclass(frozen=True)
class NeighbourVotesConfig(OneViewConfig):
    """The defaults are those of PL-KNN."""

    k: Annotated[int, Between(3, 50, log=True)] = 10
    """Number of nearest neighbours that vote. Larger candidate sets need more."""
    weights: Annotated[Literal["distance", "uniform", "similarity"], Among(("distance", "uniform"))] = "distance"
    """Weight of a neighbour's vote: decreasing with distance (`distance`), constant (`uniform`), or exp((cos - 1)/τ)
    (`similarity`), which needs `space=unit`."""
    ballot: Annotated[Literal["whole", "shared"], Among(("whole", "shared"))] = "whole"
    """A neighbour gives one vote to each of its candidates (`whole`), or divides one vote among them (`shared`)."""
    power: Annotated[float, Between(1.0, 8.0, log=True)] = 1.0
    """Votes are raised to this power before they are normalised; higher makes the targets sharper."""
    space: Annotated[Literal["standard", "unit", "raw"], Among(("standard", "unit", "raw"))] = "standard"
    """Space of the neighbour search: the standardised inputs of the network (`standard`), these rows scaled to length
    1, so that angles count (`unit`), or the original samples (`raw`), where columns with large values count more."""
    temperature: float = 0.1
    """τ of `weights=similarity`; lower favours the most similar."""
    refresh_epochs: int = 0
    """Repeat the search and the vote after this number of epochs, with the features of the network; 0 never does.
    Useful for images, because pixel distances say little about similarity."""

    def __post_init__(self) -> None:
        require_positive(self, "k", "power", "temperature")
        require_not_negative(self, "refresh_epochs")
        if self.weights == "similarity" and self.space != "unit":
            raise UserError("--option weights=similarity requires angles: add --option space=unit.")

    @property
    def packs_sets(self) -> bool:
        return True

    @property
    def needs_scale(self) -> bool:
        return self.space == "raw"


class NeighbourVotes(OneView):
    """Learns soft labels from the votes of the nearest samples."""

    Config = NeighbourVotesConfig
    paper = "Hüllermeier & Beringer, IDA"
    year = 2005
    memory = "N×K votes"
    config: NeighbourVotesConfig
    confidence: Confidence

    def __init__(
        self, network: Network, candidates: Candidates, config: NeighbourVotesConfig, scale: Tensor | None = None
    ) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)
        self.scale = scale

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        """Vote before the first epoch, and again every `refresh_epochs` with the network's features."""
        super().start_epoch(progress, batches)
        if progress.epoch == 0:
            self.vote(torch.cat([self.rows(batch.views[0]) for batch in batches()]))
        elif self.config.refresh_epochs and progress.epoch % self.config.refresh_epochs == 0:
            self.network.eval()
            with torch.no_grad():
                features = torch.cat([self.network.encode(batch.views[0]) for batch in batches()])
            self.network.train()
            self.vote(wide(features))
        return False

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        logits = self.network(batch.views[0]).logits
        return StepOutput(soft_cross_entropy(logits, self.confidence[batch.index]), logits)

    def rows(self, samples: Tensor) -> Tensor:
        """Samples as points in the space of the neighbour search, `(B, …)` to `(B, d)`."""
        if self.scale is None:
            return samples.flatten(1)
        # Back to the original scale, up to a shift, which leaves distances unchanged.
        scale = self.scale.to(samples).view(-1, *[1] * (samples.ndim - 2))
        return (samples * scale).flatten(1)

    @torch.no_grad()
    def vote(self, rows: Tensor) -> None:
        """Set the targets of all samples; `rows` are those of this process, in the order of the samples."""
        rows = distributed.gather_rows(normalize(rows) if self.config.space == "unit" else rows)
        samples, classes = self.candidates.shape
        neighbours = Neighbours(samples, self.config.k).to(rows.device)
        neighbours.find(rows)
        width = max(1, neighbours.value.shape[1]) * max(rows.shape[1], classes)
        for some in torch.split(torch.arange(samples, device=rows.device), max(1, _ENTRIES // width)):
            own = some[distributed.split(len(some)).own]  # processes share the work; `replace` gathers it
            votes = self.count(rows, own, neighbours.value[own])
            shares = vote_shares(votes, self.candidates[own], self.config.power)
            known = self.prior.shares(own, self.candidates[own])
            if known is not None:
                shares = vote_shares(shares * known, self.candidates[own], power=1.0)
            self.confidence.replace(own, shares)

    def count(self, rows: Tensor, index: Tensor, nearest: Tensor) -> Tensor:
        """The votes `(B, K)` of the neighbours `nearest` `(B, k)` for samples at `index` `(B,)`, for all labels."""
        # Recomputed, because rounding in the search distorts distances between near duplicates.
        distances = (rows[nearest] - rows[index][:, None]).norm(dim=2)
        weights = vote_weights(distances, self.config.weights, self.config.temperature)
        ballots = self.candidates[nearest.flatten()].to(weights.dtype)
        if self.config.ballot == "shared":
            ballots = ballots / ballots.sum(1, keepdim=True)
        return (weights[:, :, None] * ballots.view(*nearest.shape, ballots.shape[1])).sum(1)


def vote_weights(distances: Tensor, kind: Literal["distance", "uniform", "similarity"], temperature: float) -> Tensor:
    """The weight of each neighbour's vote, `(B, k)`, from its Euclidean distance `(B, k)`."""
    if kind == "similarity":  # of unit vectors: |a - b|² = 2 - 2 cos
        return (-distances.square() / (2 * temperature)).exp()
    total = distances.sum(1, keepdim=True)
    # A single neighbour would have no weight at all.
    if kind == "uniform" or distances.shape[1] == 1:
        return torch.ones_like(distances)
    return torch.where(total < _SAME_PLACE, 1.0, 1 - distances / total)


def vote_shares(votes: Tensor, candidates: Tensor, power: float) -> Tensor:
    """Votes for the candidates, raised to a power and normalised, `(B, K)`; without votes, equal for all candidates."""
    inside = votes * candidates
    most = inside.amax(1, keepdim=True)
    # Relative to the highest count, so that powers of large and small numbers stay finite.
    shares = torch.where(most > 0, (inside / most) ** power, candidates.to(votes.dtype))
    return shares / shares.sum(1, keepdim=True)
