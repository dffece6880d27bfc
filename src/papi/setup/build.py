"""From a config and data to what trains: the method with its network, the batches, the description of the model."""

from typing import Any

import numpy as np
import torch

from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.loader import Loader
from papi.data.views.features import views_of
from papi.data.views.images import Normalise
from papi.errors import UserError
from papi.methods.base import Method
from papi.methods.packed import packed, worth_packing
from papi.networks import build, compile_encoders, require_fitting
from papi.randomness import seed_torch
from papi.runs.model import ModelCard
from papi.runs.parent import Parent
from papi.training import engine


def build_method(
    method_class: type[Method],
    method_config: Any,
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    device: torch.device,
    parent: Parent | None,
) -> Method:
    require_fitting(known(config.network), dataset.kind)
    seed_torch(config.seed, "network")
    network = build(
        known(config.network),
        dataset.samples.shape[1],
        len(dataset.class_names),
        project=method_class.projects(method_config),
    )
    network.autocast, _ = engine.half_precision(config.precision, device)  # before a method copies the network
    if parent is not None:
        parent.hand_weights(network)
    extras: dict[str, Any] = {}
    if method_class.needs_truth(method_config):
        if dataset.labels is None:
            raise UserError(
                f"--method {config.method} with these options needs true labels, and {dataset.name} has none."
            )
        extras["truth"] = torch.from_numpy(dataset.labels)
    if method_class.needs_shape(method_config):
        extras["shape"] = dataset.input_shape
    mask = torch.from_numpy(candidates)
    pack = method_class.packs(method_config) and worth_packing(mask)
    method = method_class(network, packed(mask) if pack else mask, method_config, **extras)
    if parent is not None:
        parent.hand_prototypes(method)
    if dataset.initial_confidence is not None and method.confidence is not None:
        method.confidence.start_from(torch.from_numpy(dataset.initial_confidence))
    if config.compile:
        compile_encoders(method)
    return method.to(device)


def build_loader(
    method: Method, dataset: Dataset, config: RunConfig, normalise: Normalise, device: torch.device
) -> Loader:
    return Loader(
        torch.from_numpy(np.ascontiguousarray(dataset.samples)).to(device),
        method.candidates,
        views_of(dataset),
        normalise,
        method.views,
        batch_size=known(config.batch_size),
        seed=config.seed,
        drop_last=bool(config.drop_last),
    )


def card_of(config: RunConfig, dataset: Dataset, method: Method, temperature: float) -> ModelCard:
    return ModelCard(
        network=known(config.network),
        class_names=dataset.class_names,
        shape=dataset.input_shape,
        mean=dataset.mean,
        std=dataset.std,
        projects=method.network.projector is not None,
        temperature=temperature,
    )


def known(value: Any) -> Any:
    """A value that `complete` has filled in."""
    assert value is not None
    return value
