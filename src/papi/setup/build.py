"""Builds the parts of a run from its settings and data: the method with its network, the loader and the model card."""

from typing import Any

import numpy as np
import torch
from torch import nn

from papi.config import Settings
from papi.data.dataset import Dataset
from papi.data.loader import Loader, is_mapped, on_device
from papi.data.packed_rows import parts_of
from papi.data.views.base import Normalise
from papi.data.views.choose import views_of
from papi.errors import UserError
from papi.files.reading import memory_bytes
from papi.methods import find_method
from papi.methods.base import Method
from papi.methods.packed import packed, worth_packing
from papi.methods.state import AveragedNetwork
from papi.networks import Factory, build, compile_encoders, reference, require_fitting
from papi.networks.pretrained import Pretrained
from papi.randomness import seed_torch
from papi.runs.model import ModelCard
from papi.runs.parent import Parent
from papi.setup.encoder import card_of_encoder
from papi.training.devices import half_precision

IN_CACHE = 0.5  # share of the memory: the system keeps smaller files in it, and reading ahead does not help
FEW_FOR_STATISTICS = 128  # images per step; with fewer, the pretrained batch-norm statistics are better


def build_method(
    settings: Settings,
    dataset: Dataset,
    candidates: np.ndarray,
    device: torch.device,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
    encoder: Pretrained | None = None,
) -> Method:
    """Build the method on its device, with a new network or the weights of a parent run.

    The settings name the network unless `network` is given. An `encoder` to fine-tune is copied.
    """
    kind = find_method(settings.method)
    config = kind.Config(**settings.options)
    named = settings.head or settings.network
    if network is None:
        require_fitting(named, dataset.kind)
    seed_torch(settings.seed, "network")
    classes = len(dataset.class_names)
    tuned = encoder is not None and settings.tune == "all"
    chosen = encoder.encoder if encoder is not None and tuned else named if network is None else network
    whole = build(chosen, dataset.input_shape, classes, project=config.needs_projector)
    if tuned:
        whole.encoder.requires_grad_(True)
        whole.fixed_statistics = settings.batch_size < FEW_FOR_STATISTICS
    whole.autocast, _ = half_precision(settings.precision, device)  # before a method copies the network
    if parent is not None:
        parent.hand_weights(whole)
    extras: dict[str, Any] = {}
    if config.needs_truth:
        if dataset.labels is None:
            raise UserError(
                f"--method {settings.method} with these options needs true labels, but {dataset.name} has none: choose "
                "another method, or add true labels."
            )
        extras["truth"] = torch.from_numpy(dataset.labels)
    if config.needs_shape:
        extras["shape"] = dataset.input_shape
    if config.needs_scale:
        extras["scale"] = torch.tensor(dataset.std)
    mask = torch.from_numpy(candidates)
    pack = config.packs_sets and worth_packing(mask)
    method = kind(whole, packed(mask) if pack else mask, config, **extras)
    if parent is not None:
        parent.hand_prototypes(method)
    if dataset.prior is not None and settings.candidates.kind is None:  # synthetic candidate sets have no prior
        method.give_prior(torch.from_numpy(dataset.prior), settings.candidates.weigh or "auto")
    if dataset.initial_confidence is not None and method.confidence is not None:
        for part in parts_of(*dataset.initial_confidence.shape):
            method.confidence.start_from(torch.from_numpy(dataset.initial_confidence[part]), part)
    if settings.optim.average:
        method.averaged = AveragedNetwork(method.network, settings.optim.average)
    if settings.compile:
        compile_encoders(method)
    return method.to(device)


def build_loader(
    method: Method, dataset: Dataset, settings: Settings, normalise: Normalise, device: torch.device
) -> Loader:
    """Build the loader of the training samples, which are one tensor on the device or mapped from a file."""
    samples = on_device(dataset.samples, device)
    from_disk = is_mapped(dataset.samples) and samples.nbytes > IN_CACHE * memory_bytes()
    return Loader(
        samples,
        method.candidates,
        views_of(dataset),
        normalise,
        method.config.view_names,
        batch_size=settings.batch_size,
        seed=settings.seed,
        drop_last=settings.drop_last,
        ahead=samples.device.type != device.type or (device.type == "cpu" and from_disk),
    )


def card_of(
    settings: Settings,
    dataset: Dataset,
    method: Method,
    temperature: float,
    network: Factory | nn.Module | None = None,
    encoder: Pretrained | None = None,
) -> ModelCard:
    """Return the description that is needed to use the trained network."""
    return ModelCard(
        network=(settings.head or settings.network) if network is None else reference(network),
        class_names=dataset.class_names,
        shape=dataset.input_shape,
        mean=dataset.mean,
        std=dataset.std,
        projects=method.network.projector is not None,
        temperature=temperature,
        encoder=None if encoder is None else card_of_encoder(encoder, settings),
        photos=dataset.photos.preparation if dataset.photos is not None and dataset.kind == "images" else None,
    )
