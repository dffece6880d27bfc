"""Applies a network to samples. Training, inference and export all use this one pure function."""

from typing import NamedTuple

import torch
from torch import Tensor

from papi import distributed
from papi.data.loader import rows_at_once, values_of
from papi.data.views.base import Normalise
from papi.methods.state import Prototypes
from papi.networks import Network, folded

MOST_ROWS = 400  # at a time: with more, what a layer passes on leaves the cache of some processors


class Evaluation(NamedTuple):
    """The outputs of a network for samples, in evaluation mode, on the CPU."""

    logits: Tensor  # (N, K) float32 of the linear classifier
    embedding: Tensor  # (N, d) unit vectors
    prototype_scores: Tensor | None  # (N, K) similarities; None without prototypes

    @property
    def probabilities(self) -> Tensor:
        """Probabilities `(N, K)` of the linear classifier."""
        return self.logits.softmax(1)

    def calibrated(self, temperature: float) -> Tensor:
        """Probabilities `(N, K)` at a temperature; a temperature above 1 corrects an overconfident model."""
        return (self.logits / temperature).softmax(1)


@torch.inference_mode()
def evaluate(
    network: Network,
    samples: Tensor,
    normalise: Normalise,
    prototypes: Prototypes | None = None,
    chosen: Tensor | None = None,
) -> Evaluation:
    """Apply a network to images `(N, C, H, W) uint8` or features `(N, d)`. The state of the network does not change.

    Of many samples, only those at the positions `chosen` `(M,)` may be wanted; they are read when their turn comes.
    Several processes share the samples, and each gets the outputs for all of them.
    """
    part = distributed.split(len(samples) if chosen is None else len(chosen))
    own = samples[part.own] if chosen is None else chosen[part.own].to(samples.device)
    was_training = network.training
    network.eval()
    quick = folded(network)
    logits, embeddings = [], []
    for some in torch.split(own, rows_at_once(values_of(samples, normalise), MOST_ROWS)):
        output = quick(normalise(some if chosen is None else samples[some]))
        logits.append(output.logits.float().cpu())
        embeddings.append(quick.project(output.features).cpu())
    network.train(was_training)
    embedding = part.gather(torch.cat(embeddings))
    # Until the first class has been seen, all prototypes are zero and all scores are equal: there is nothing to report.
    seen = prototypes is not None and bool((prototypes.value != 0).any())
    scores = embedding @ prototypes.value.cpu().T if prototypes is not None and seen else None
    return Evaluation(part.gather(torch.cat(logits)), embedding, scores)
