"""Trains a head on the frozen encoder before the whole network is fine-tuned."""

from dataclasses import replace

import numpy as np
import torch

from papi.config import OptimConfig, RunConfig
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.networks.pretrained import Pretrained
from papi.runs.parent import HeadStart
from papi.setup.encoder import seen_by
from papi.setup.settings import settings_for
from papi.train.events import Finished, StopRequested, never
from papi.train.one_run import one_run
from papi.training.engine import EpochEnded


def head_first(
    photos: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    encoder: Pretrained,
    stop_requested: StopRequested = never,
    progress: PreparationProgress = silent,
) -> tuple[Dataset, HeadStart] | None:
    """Train a head on the frozen encoder. Returns the photos with its confidence, and its classifier for unnormalised
    features. None if interrupted.

    A resumed run repeats this, which takes seconds, because the embeddings are cached.
    """
    frozen = replace(
        config, tune="head", head="linear", epochs=None, batch_size=None, drop_last=None, optim=OptimConfig(),
        select="last", stop_when="never", data_holdout=None, data_views=0, calibrate=False, compile=False, threads=None,
    )  # fmt: skip
    seen = seen_by(encoder, photos, frozen, stop_requested, progress, roots=False)  # a root's slope is infinite at zero
    if seen is None:
        return None
    settings = replace(settings_for(frozen, seen), candidates=settings_for(config, photos).candidates)
    last = None
    for event in one_run(seen, candidates, settings, None, stop_requested, encoder=encoder):
        last = event
        if isinstance(event, EpochEnded):
            progress("training the head", event.row.epoch + 1, settings.epochs)
    if not isinstance(last, Finished) or last.trained is None:
        return None
    classifier = last.trained.method.network.classifier
    mean, std = torch.tensor(seen.mean), torch.tensor(seen.std)
    weight = classifier.weight.detach().cpu() / std
    start = HeadStart({"weight": weight, "bias": classifier.bias.detach().cpu() - weight @ mean})
    return replace(photos, initial_confidence=last.trained.arrays.confidence), start
