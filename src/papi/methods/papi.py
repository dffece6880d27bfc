"""PaPi: partial-label learning with a guided prototypical classifier (Xia et al., CVPR 2023).

A linear classifier, restricted to the candidates, estimates the label of each image (*confidence*, p in the paper). A
second classifier compares a projection of the image with one prototype per class (c). It is trained to match the first
classifier (*alignment*, L_ali) on mixtures of images, so that the shared encoder learns well-separated classes.

Symbols: λ confidence momentum, γ prototype momentum, φ mixing ratio, ϕ(t) alignment weight, τ temperature.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from papi import distributed
from papi.methods.clouds import Rows, believed, fitted
from papi.methods.listening import Listening
from papi.methods.losses import (
    balance_loss,
    candidate_argmax,
    candidate_prediction,
    candidate_softmax,
    mixed_kl_divergence,
    non_candidate_loss,
    soft_cross_entropy,
    wide,
)
from papi.methods.packed import uniform_confidence
from papi.methods.papi_settings import PaPiConfig
from papi.methods.schedules import linear, ramp
from papi.methods.state import Confidence, Prototypes
from papi.networks import Network, Output
from papi.randomness import draws
from papi.types import Batch, Progress, StepOutput

_FIRST_EPOCH_MOMENTUM = 0.99
_AFTER_CLOUDS = 0.95  # confidence momentum once Gaussian classes have set the confidence; falls to 0
# The form with one pass is for short runs. On many classes they resolve few labels, and alignment confirms wrong ones.
_FEW_CLASSES = 10


class PaPi(Listening):
    """Two classifiers on one encoder: the linear one predicts, and the prototypical one is aligned with it."""

    Config = PaPiConfig
    paper = "Xia et al., CVPR"
    year = 2023
    memory = "N×K confidence, K×d prototypes"
    bf16 = True
    config: PaPiConfig
    confidence: Confidence
    prototypes: Prototypes

    def __init__(self, network: Network, candidates: Tensor, config: PaPiConfig) -> None:
        super().__init__(network, candidates, config)
        self.confidence = uniform_confidence(candidates)
        if config.alignment:
            self.prototypes = Prototypes(candidates.shape[1], network.projection)

    def start_epoch(self, progress: Progress, batches: Callable[[], Iterator[Batch]]) -> bool:
        new_phase = super().start_epoch(progress, batches)
        if not self.config.asks_clouds or progress.epoch < _cloud_epoch(progress):
            return new_phase
        last = progress.epoch == progress.epochs - 1
        self.network.eval()
        if progress.epoch == _cloud_epoch(progress):
            rounds = self.config.cloud_rounds
            self.confidence.start_from(believed(self.rows_of(batches), self.confidence.all_rows, rounds))
        if last:
            self.end_with_clouds(self.rows_of(batches))
        self.network.train()
        return new_phase or last

    def rows_of(self, batches: Callable[[], Iterator[Batch]]) -> Rows:
        """The features of all samples, and the weight of each label."""

        def rows() -> Iterator[tuple[Tensor, Tensor]]:
            for batch in batches():
                known = self.prior.shares(batch.index, batch.candidates)
                with torch.no_grad():
                    yield wide(self.network.encode(batch.views[0])), batch.candidates if known is None else known

        return rows

    @torch.no_grad()
    def end_with_clouds(self, rows: Rows) -> None:
        """Replace the weights of the linear classifier by those of the Gaussians that its predictions give.

        The last epoch, whose learning rate is low, hardly changes them.
        """
        linear_classifier = self.network.classifier
        scored = [(wide(linear_classifier(features)), counted) for features, counted in rows()]
        guess = torch.cat([candidate_softmax(logits, counted) for logits, counted in scored])
        predicted = torch.cat([logits.softmax(1) for logits, _ in scored])
        weight, bias = fitted(rows, distributed.gather_rows(guess), predicted)
        linear_classifier.weight.copy_(weight)
        linear_classifier.bias.copy_(bias)

    def momenta_and_weight(self, progress: Progress) -> tuple[float, float, float]:
        """Confidence momentum, prototype momentum and alignment weight at this point of the run."""
        if self.config.schedule == "step":
            position, fraction = progress.epochs_done, progress.fraction
        elif progress.epoch == 0:
            return _FIRST_EPOCH_MOMENTUM, _FIRST_EPOCH_MOMENTUM, 0.0
        else:  # the release sets the momenta after each epoch, so they lag by one
            position, fraction = progress.epoch, (progress.epoch - 1) / progress.epochs
        confidence = linear(*self.config.confidence_momentum, fraction)
        if self.config.asks_clouds and progress.epoch >= _cloud_epoch(progress):
            half = _cloud_epoch(progress)
            confidence = linear(_AFTER_CLOUDS, 0.0, (progress.epochs_done - half) / (progress.epochs - half))
        weight = self.config.alignment_weight * ramp(position, self.config.ramp_epochs)
        if self.config.passes == "one":
            weight *= min(1.0, _FEW_CLASSES / self.candidates.shape[1])
        return confidence, linear(*self.config.prototype_momentum, fraction), weight

    def training_step(self, batch: Batch, progress: Progress) -> StepOutput:
        confidence_momentum, prototype_momentum, weight = self.momenta_and_weight(progress)
        first = self.network(batch.views[0])
        tolerated = self.tolerance.admit(batch, first.logits, progress)
        candidates = self.prior.weigh(batch, first.logits, tolerated, progress)
        guess, label = candidate_prediction(first.logits.detach(), candidates)
        if not self.config.alignment:
            self.confidence.average(batch.index, guess, confidence_momentum)
            loss = soft_cross_entropy(first.logits, self.confidence[batch.index]) + self.added(first.logits, tolerated)
            return StepOutput(loss, first.logits, logs=self.logs(progress))

        part = distributed.locate(len(batch.index))
        share, partner = self.draw_mixture(part, progress)

        def mixed(*views: Tensor) -> list[Tensor]:
            if share == 1:
                return list(views)
            whole = part.gather_all(*views)
            return [share * own + (1 - share) * all_[partner] for own, all_ in zip(views, whole, strict=True)]

        learning = weight > 0 or self.config.second_view_weight > 0
        clean, features = self.further_passes(first, batch.views, mixed, learning)
        with torch.set_grad_enabled(weight > 0):
            projected = [self.network.project(each) for each in features]
            scores = [self.prototypes.scores(each) / self.config.temperature for each in projected]

        if features[0] is not first.features:  # unmixed views are projected already
            with torch.no_grad():
                projected = [self.network.project(view.features) for view in clean]
        target = self.confidence.averaged(batch.index, guess, confidence_momentum)  # Eq. 3, before the loss
        labels = [label, *(candidate_argmax(view.logits, candidates) for view in clean[1:])]
        prototype_scores, targets = self.update(part, batch.index, target, projected, labels, prototype_momentum)
        other = targets.index_select(0, partner)
        classification = soft_cross_entropy(first.logits, target) + self.added(first.logits, tolerated)
        if self.config.second_view_weight:
            second = self.network.classifier(features[0])
            classification = classification + self.config.second_view_weight * soft_cross_entropy(second, target)
        alignment = torch.stack([mixed_kl_divergence(target, other, share, view) for view in scores]).sum()
        loss = classification + weight * alignment if weight > 0 else classification
        logs = {"loss_classification": classification, "loss_alignment": alignment}
        return StepOutput(loss, first.logits, prototype_scores, logs | self.logs(progress))

    def added(self, logits: Tensor, tolerated: Tensor) -> Tensor | float:
        """What the first view is trained on besides the confidence: balanced predictions, inside the candidate sets.

        An unlikely candidate is not outside, so the prior does not count here.
        """
        weight = self.config.exclusion_weight
        return self.balance(logits) + (weight * non_candidate_loss(logits, tolerated) if weight else 0.0)

    def balance(self, logits: Tensor) -> Tensor | float:
        """The loss that penalises predictions biased towards classes that often replace others."""
        weight, sets = self.config.balance_weight, self.prior.sets
        by_evidence = self.config.balance_by_evidence
        if not weight or (by_evidence and sets is None):
            return 0.0
        whole = distributed.gather_rows(wide(logits).softmax(1))  # each process weights it by its share of the rows
        if len(whole) < whole.shape[1]:
            return 0.0
        return (weight * sets.evidence if sets is not None and by_evidence else weight) * balance_loss(whole)

    def further_passes(
        self, first: Output, views: Sequence[Tensor], mixed: Callable[..., list[Tensor]], learning: bool
    ) -> tuple[list[Output], list[Tensor]]:
        """The passes after the first view: clean outputs for the prototypes, and the features to align.

        Batch norm sees the views one at a time in this order, even while alignment is off.
        """
        if self.config.passes == "one":
            return [first], [first.features]
        if self.config.passes == "two":
            with torch.set_grad_enabled(learning):
                return [first], [self.network.encode(view) for view in mixed(views[1])]
        with torch.set_grad_enabled(learning and not self.config.mixup):
            second = self.network(views[1])
        if not self.config.mixup:
            return [first, second], [first.features, second.features]
        with torch.set_grad_enabled(learning):
            return [first, second], [self.network.encode(view) for view in mixed(*views)]

    def draw_mixture(self, part: distributed.Part, progress: Progress) -> tuple[float, Tensor]:
        """One mixing ratio per batch, and the partner of each own image; without mixup, each is its own partner."""
        if not self.config.mixup or self.config.passes == "one":
            return 1.0, torch.arange(part.own.start, part.own.stop, device=self.candidates.device)
        generator = draws(progress.seed, "mixup", progress.epoch, progress.step)
        share = float(generator.beta(self.config.mixup_alpha, self.config.mixup_alpha))
        return share, torch.from_numpy(generator.permutation(part.total)[part.own]).to(self.candidates.device)

    @torch.no_grad()
    def update(
        self,
        part: distributed.Part,
        index: Tensor,
        target: Tensor,
        projected: list[Tensor],
        labels: list[Tensor],
        momentum: float,
    ) -> tuple[Tensor, Tensor]:
        """Set the confidence to `target` `(B, K)`, and add the projected clean views, with their predicted labels, to
        the prototypes, first view before second. Returns the old scores, and the targets of the whole batch.

        Processes exchange the rows of both in one message.
        """
        scores = self.prototypes.scores(projected[0])
        rows = (index, target, torch.stack(projected, 1), torch.stack(labels, 1))
        index, targets, features, predicted = part.gather_all(*rows)
        self.prototypes.add(features, predicted, momentum)
        self.confidence.write(index, targets)
        return scores, targets


def _cloud_epoch(progress: Progress) -> int:
    """The epoch in which Gaussian classes set the confidence: half-way, and at least one epoch into the run."""
    return max(1, progress.epochs // 2)
