"""DIRK: distilling reliable knowledge for instance-dependent partial-label learning (Wu et al., AAAI 2024).

A moving average of the network, the *teacher*, predicts the label of each image. Its prediction is *rectified*: it
keeps its proportions, but no label outside the candidates may exceed the lowest candidate. The network is trained on
this distribution over all labels. DIRK-REF adds a contrastive loss that pulls images with the same rectified label
together, more strongly if their distributions are similar.

Symbols: q target (the rectified prediction), z query, k key, m teacher momentum, τ temperature.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from papi import distributed
from papi.config import CandidateKind, Values
from papi.methods.base import Method
from papi.methods.config import MethodConfig, Passes, Release
from papi.methods.losses import (
    Compared,
    candidate_argmax,
    info_nce,
    rectified,
    soft_cross_entropy,
    weighted_contrastive,
)
from papi.methods.options import require_not_negative, require_positive, require_share
from papi.methods.packed import Candidates
from papi.methods.ranges import Among, Between
from papi.methods.state import FeatureQueue, MomentumCopy
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput


@dataclass(frozen=True)
class DIRKConfig(MethodConfig):
    """The defaults are those of the released code, with the refinement off.

    The release divides probabilities, which gives undefined or vanishing targets for logits far apart, and takes the
    best of all labels. Here targets are computed in log space, and the best label is always a candidate.
    """

    refinement_weight: float = 0.0
    """Weight of the contrastive loss: 0 is DIRK, 1 is DIRK-REF, which needs twice as many passes."""
    certain: Annotated[Literal["one-hot", "rectified"], Among(("one-hot", "rectified"))] = "one-hot"
    """Target of an image with a single candidate: the label itself, or the rectified prediction as in the release,
    which gives the label at most half of the probability."""
    teacher_momentum: Annotated[float, Between(0.8, 0.999)] = 0.99
    """Momentum of the teacher. In short runs 0.9 is better."""
    warmup_epochs: float = 1.0
    """DIRK-REF: epochs in which a key is the only positive of its query."""
    temperature: Annotated[float, Between(0.03, 0.3, log=True)] = 0.07
    """DIRK-REF: temperature of the similarities of features; lower is sharper."""
    belief_temperature: Annotated[float, Between(0.1, 1.0, log=True)] = 0.4
    """DIRK-REF: temperature of the similarities of distributions; lower favours the most similar ones."""
    queue: int = 4096
    """DIRK-REF: number of earlier keys in the queue of the contrastive loss."""

    def __post_init__(self) -> None:
        require_positive(self, "temperature", "belief_temperature", "queue")
        require_share(self, "teacher_momentum")
        require_not_negative(self, "refinement_weight", "warmup_epochs")

    @property
    def refines(self) -> bool:
        """Whether it is DIRK-REF."""
        return self.refinement_weight > 0

    @property
    def view_names(self) -> tuple[str, ...]:
        return ("strong", "weak", "strong") if self.refines else ("strong",)

    @property
    def encoder_passes(self) -> Passes:
        return Passes(4, 2) if self.refines else Passes(2, 1)

    @property
    def needs_projector(self) -> bool:
        return self.refines

    @property
    def packs_sets(self) -> bool:
        return True

    @property
    def idle(self) -> frozenset[str]:
        """Without refinement, the settings of the refinement."""
        return frozenset(() if self.refines else ("temperature", "belief_temperature"))

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, object]) -> Values:
        """In a run of a few thousand steps, a teacher that lags by a hundred steps is out of date.

        DIRK-REF: a queue that spans much of the data holds outdated keys.
        """
        return {"teacher_momentum": 0.9} | ({"queue": 1024} if given.get("refinement_weight") else {})

    @classmethod
    def released(
        cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, object]
    ) -> Release:
        """500 epochs in small batches, the same for all datasets."""
        return Release(500, 0.01, 1e-3, "cosine", drop_last=True, batch_size=64)


class DIRK(Method):
    """Learns the predictions of a slow teacher, rectified by the candidate sets."""

    Config = DIRKConfig
    paper = "Wu et al., AAAI"
    year = 2024
    memory = "second network, with refinement a queue"
    config: DIRKConfig
    queue: FeatureQueue | None

    def __init__(self, network: Network, candidates: Candidates, config: DIRKConfig) -> None:
        super().__init__(network, candidates, config)
        self.teacher = MomentumCopy(network)
        self.queue = FeatureQueue(config.queue, network.projection, candidates.shape[1]) if config.refines else None

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        # Batch norm sees each view separately, in the release's order: keys before predictions, in both networks.
        with torch.no_grad():
            self.teacher.average(self.network, self.config.teacher_momentum)
            key = self.project(self.teacher.value, batch.views[1]) if self.queue is not None else None
            answer = self.teacher.value(batch.views[0]).logits
            # A prior shifts the teacher's prediction among the candidates; labels outside are unchanged.
            shift = torch.where(batch.candidates, self.admit(batch, answer, progress), 1.0).log()
            target = self.target(answer + shift, batch.candidates)
        query = self.project(self.network, batch.views[2]) if self.queue is not None else None
        logits = self.network(batch.views[0]).logits
        classification = soft_cross_entropy(logits, target)
        if query is None or key is None:
            return StepOutput(classification, logits, logs=self.logs(progress))
        contrastive = self.contrast(query, key, target, batch, progress)
        logs = {"loss_classification": classification, "loss_contrastive": contrastive}
        loss = classification + self.config.refinement_weight * contrastive
        return StepOutput(loss, logits, logs=logs | self.logs(progress))

    def target(self, logits: Tensor, candidates: Tensor) -> Tensor:
        """The target of the network `(B, K)`, from the teacher's logits."""
        answer = rectified(logits, candidates)
        if self.config.certain == "rectified":
            return answer
        return torch.where(candidates.sum(1, keepdim=True) == 1, candidates.to(answer.dtype), answer)

    def project(self, network: Network, images: Tensor) -> Tensor:
        """Unit vectors `(B, d)`."""
        return network.project(network.encode(images))

    def contrast(self, query: Tensor, key: Tensor, target: Tensor, batch: Batch, progress: Progress) -> Tensor:
        """The contrastive loss of queries and keys `(B, d)`; the keys are then added to the queue."""
        assert self.queue is not None
        assert self.queue.beliefs is not None
        winners = candidate_argmax(target, batch.candidates)
        if progress.epochs_done < self.config.warmup_epochs:
            loss = info_nce(query, key, self.queue.features, self.config.temperature)
        else:
            part = distributed.locate(len(winners))  # rows of other processes are compared, too
            keys, *beliefs = part.gather_all(key, winners, target)
            queries = Compared(part.gather(query), *beliefs)
            others = Compared(
                torch.cat([keys, self.queue.features]),
                torch.cat([queries.labels, self.queue.labels]),
                torch.cat([queries.beliefs, self.queue.beliefs]),
            )
            loss = weighted_contrastive(
                queries, others, self.config.temperature, self.config.belief_temperature, part.own
            )
        self.queue.push(key, winners, target)
        return loss
