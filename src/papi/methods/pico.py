"""PiCO: contrastive label disambiguation for partial-label learning (Wang et al., ICLR 2022).

A contrastive loss pulls images with the same predicted class together in a projected space, against the rest of the
batch and a long queue of earlier images. The prototype nearest to an image selects one of its candidates, which updates
the *confidence*, and the linear classifier is trained on the confidence.

Symbols: q query (weak view), k key (strong view, slowly following network), τ temperature, μ prototypes, φ confidence
momentum, γ prototype momentum, λ weight of the contrastive loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from papi import distributed
from papi.config import CandidateKind, Values
from papi.methods.config import Passes, Release, six_digits
from papi.methods.listening import Listening, ListeningConfig
from papi.methods.losses import (
    candidate_argmax,
    candidate_softmax,
    info_nce,
    soft_cross_entropy,
    supervised_contrastive,
)
from papi.methods.options import require_not_negative, require_positive, require_share
from papi.methods.packed import uniform_confidence
from papi.methods.ranges import Between
from papi.methods.schedules import linear
from papi.methods.state import Confidence, FeatureQueue, MomentumCopy, Prototypes
from papi.networks import Network
from papi.types import Batch, Progress, StepOutput

_FIRST_EPOCH_MOMENTUM = 0.99
_RELEASED_EPOCHS = 800
_MANY_CANDIDATES = 0.075  # flip rates of 0.1 and 0.2, not those of 0.01 and 0.05


@dataclass(frozen=True)
class PiCOConfig(ListeningConfig):
    """The defaults are those of the released code for CIFAR-10."""

    warmup_epochs: float = 1.0
    """Number of epochs in which a query has only its own key as a positive and the confidence is not updated."""
    contrastive_weight: Annotated[float, Between(0.1, 2.0, log=True)] = 0.5
    """Weight of the contrastive loss."""
    temperature: Annotated[float, Between(0.03, 0.3, log=True)] = 0.07
    """Temperature of the contrastive loss; lower is sharper."""
    prototype_momentum: Annotated[float, Between(0.8, 0.999)] = 0.99
    """Momentum of the prototypes."""
    encoder_momentum: Annotated[float, Between(0.9, 0.999)] = 0.999
    """Momentum of the key network."""
    confidence_momentum: Annotated[tuple[float, float], Between(0.3, 0.99)] = (0.95, 0.8)
    """Momentum of the confidence at the start and at the end of the run."""
    queue: int = 8192
    """Number of earlier keys in the queue of the contrastive loss."""
    positives: Literal["guess", "truth"] = "guess"
    """Which images are positives: those with the same predicted class (`guess`), or with the same true label (`truth`,
    PiCO-v2, an oracle)."""
    guidance: Literal["prototypes", "classifier", "classifier-hard"] = "prototypes"
    """Target of the confidence: the candidate of the nearest prototype (`prototypes`), the classifier's distribution
    over the candidates (`classifier`; PiCO-v3 together with `positives=truth`), or the classifier's best candidate
    (`classifier-hard`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "temperature", "queue")
        require_share(self, "prototype_momentum", "encoder_momentum", "confidence_momentum")
        require_not_negative(self, "warmup_epochs", "contrastive_weight")

    @property
    def view_names(self) -> tuple[str, ...]:
        """The query's view, then the key's."""
        return ("weak", "strong")

    @property
    def encoder_passes(self) -> Passes:
        return Passes(2, 1)

    @property
    def needs_projector(self) -> bool:
        """The contrastive loss works on projections."""
        return True

    @property
    def needs_truth(self) -> bool:
        """Only if true labels select the positives."""
        return self.positives == "truth"

    @classmethod
    def quick(cls, epochs: int, given: Mapping[str, Any]) -> Values:
        """One-hot targets without momentum make early mistakes permanent, so confidence keeps some momentum.

        In a run of a few thousand steps, the contrastive loss stays near chance with the key momentum for 800 epochs
        and a queue that spans most of the data.
        """
        start, end = (momentum ** (_RELEASED_EPOCHS / epochs) for momentum in (0.95, 0.8))
        return {
            "warmup_epochs": six_digits(epochs / 4),
            "queue": 1024,
            "encoder_momentum": 0.99,
            "confidence_momentum": (six_digits(max(0.9, start)), six_digits(max(0.5, end))),
        }

    @classmethod
    def released(cls, dataset: str, flip_rate: float, kind: CandidateKind | None, given: Mapping[str, Any]) -> Release:
        """800 epochs; PaPi's authors used a long warm-up for many classes with many candidates."""
        large = kind == "instance-dependent" or flip_rate > _MANY_CANDIDATES  # those sets have no flip rate
        many = large and dataset in ("cifar100", "mini-imagenet")
        options = {"warmup_epochs": 100.0 if many else 1.0}
        return Release(_RELEASED_EPOCHS, 0.01, 1e-3, "cosine", drop_last=True, options=options)


class PiCO(Listening):
    """Prototypes in a contrastive space select the most likely candidate."""

    Config = PiCOConfig
    paper = "Wang et al., ICLR"
    year = 2022
    memory = "N×K confidence, K×d prototypes, 8192×d queue, second network"
    config: PiCOConfig
    confidence: Confidence
    prototypes: Prototypes
    truth: Tensor | None

    def __init__(self, network: Network, candidates: Tensor, config: PiCOConfig, truth: Tensor | None = None) -> None:
        super().__init__(network, candidates, config)
        assert (truth is not None) == config.needs_truth, "only an oracle gets true labels"
        self.register_buffer("truth", truth, persistent=False)
        self.confidence = uniform_confidence(candidates)
        self.prototypes = Prototypes(candidates.shape[1], network.projection)
        self.queue = FeatureQueue(config.queue, network.projection)
        self.key_network = MomentumCopy(network)

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        features, logits = self.network(batch.views[0])
        query = self.network.project(features)
        admitted = self.admit(batch, logits, progress)
        guess = candidate_argmax(logits.detach(), admitted)
        labels = guess if self.truth is None else self.truth[batch.index]
        scores = self.prototypes.scores(query.detach())  # before this step's update
        self.prototypes.average(query.detach(), guess, self.config.prototype_momentum)
        key = self.embed_key(batch.views[1])

        if progress.epochs_done < self.config.warmup_epochs:
            contrastive = info_nce(query, key, self.queue.features, self.config.temperature)
        else:
            belief = self.belief(logits.detach(), scores, batch.candidates, admitted)
            self.confidence.average(batch.index, belief, self.confidence_momentum(progress))
            part = distributed.locate(len(labels))  # rows of other processes are compared, too
            keys, positives = part.gather_all(key, labels)
            contrastive = supervised_contrastive(
                part.gather(query),
                keys,
                self.queue.features,
                positives,
                self.queue.labels,
                self.config.temperature,
                part.own,
            )
        self.queue.push(key, labels)

        classification = soft_cross_entropy(logits, self.confidence[batch.index])
        loss = classification + self.config.contrastive_weight * contrastive
        logs = {"loss_classification": classification, "loss_contrastive": contrastive}
        return StepOutput(loss, logits, scores, logs | self.logs(progress))

    @torch.no_grad()
    def embed_key(self, images: Tensor) -> Tensor:
        """Unit vectors `(B, d)` of the key network, after its momentum update towards the query network."""
        self.key_network.average(self.network, self.config.encoder_momentum)
        network = self.key_network.value
        return network.project(network.encode(images))

    def belief(self, logits: Tensor, scores: Tensor, given: Tensor, admitted: Tensor) -> Tensor:
        """The target of the confidence of a batch, `(B, K)`; `admitted` are the candidates with the noise tolerance."""
        if self.config.guidance == "classifier":
            return candidate_softmax(logits, admitted)
        choice = one_hot(candidate_argmax(logits, admitted), logits.shape[1])
        if self.config.guidance == "prototypes":
            # Cosines are not log-probabilities, so a label outside is admitted only if the classifier chose it. Inside
            # the set, the prior applies on the scale of the contrastive loss: cosine over temperature.
            prior = self.config.temperature * torch.where(given, admitted, 1.0).log()
            choice = one_hot(candidate_argmax(scores + prior, given | choice.bool()), logits.shape[1])
        return choice.to(scores.dtype)

    def confidence_momentum(self, progress: Progress) -> float:
        """The release sets it after each epoch, so it lags by one, and the first epoch has its own value."""
        if progress.epoch == 0:
            return _FIRST_EPOCH_MOMENTUM
        return linear(*self.config.confidence_momentum, (progress.epoch - 1) / progress.epochs)
