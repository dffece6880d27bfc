"""Loads the pretrained encoder of a run and embeds photos with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from papi.config import RunConfig
from papi.data.dataset import Dataset, Progress, silent
from papi.data.images.embeddings import embedded
from papi.data.images.kept import keep
from papi.errors import UserError
from papi.networks.card import EncoderCard
from papi.networks.pointwise import fast_pointwise
from papi.networks.pretrained import Pretrained, Root, is_pretrained, load_pretrained
from papi.randomness import seed_torch
from papi.runs.schema import Record
from papi.training.devices import find_device


def with_tuning(config: RunConfig) -> RunConfig:
    """Return the config with `tune` set. With a pretrained encoder, only the head is trained by default."""
    pretrained = config.network is not None and (
        is_pretrained(config.network) or (":" in config.network and (config.tune or config.weights != "default"))
    )
    if not pretrained:
        asked = {"--tune": config.tune, "--head": config.head, "--weights": config.weights != "default" or None}
        for option, value in asked.items():
            if value is not None:
                raise UserError(
                    f"{option} needs a pretrained encoder, and {config.network or 'the default network'} is not one: "
                    "choose one with --network, such as timm:NAME or hf:NAME, or leave it out."
                )
        return config
    return replace(config, tune=config.tune or "head")


def find_encoder(config: RunConfig, *, fetch: bool = True) -> Pretrained | None:
    """Return the pretrained encoder of a config with its weights; None if the config has none.

    Without `fetch`, for example for a config read from a file, nothing is downloaded.
    """
    if config.tune is None:
        return None
    assert config.network is not None, "a config with tune names its network"
    seed_torch(config.seed, "encoder")  # for random weights
    return load_pretrained(config.network, config.weights, config.data_size, fetch=fetch)


def encoder_of(record: Record, config: RunConfig, path: Path, *, fetch: bool) -> Pretrained | None:
    """Return the pretrained encoder of a saved run. Stop if its weights differ from those of the run."""
    encoder = find_encoder(config, fetch=fetch)
    known = record.identity.get("encoder") or {}
    if encoder is not None and encoder.checksum != known.get("checksum"):
        raise UserError(
            f"{path} was trained with other weights of {encoder.reference} than those on this machine: restore the "
            "original weights, or train a new run."
        )
    return encoder


def card_of_encoder(encoder: Pretrained, config: RunConfig) -> EncoderCard:
    """Return the description of an encoder for the files of a run."""
    return EncoderCard(
        reference=encoder.reference,
        checksum=encoder.checksum,
        preparation=encoder.preparation,
        config=encoder.config,
        stored=config.embed_weights or config.tune == "all" or not encoder.provided,
    )


def seen_by(
    encoder: Pretrained | None,
    dataset: Dataset,
    config: RunConfig,
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
    *,
    roots: bool = True,
) -> Dataset | None:
    """Return a dataset as input of the network: photos become cached features of a frozen encoder.

    The features are the `roots` of the encoder's outputs, unless the encoder will be fine-tuned. None if interrupted.
    """
    if encoder is None or dataset.photos is None:
        return dataset
    if config.tune != "head":
        return replace(dataset, photos=keep(dataset.photos, progress=progress))  # every epoch uses them
    device = find_device(config.device)
    module, named = encoder.encoder.to(device), encoder.checksum
    if roots:
        module, named = nn.Sequential(module, Root()), f"roots of {named}"

    def encode(images: Tensor) -> Tensor:
        features: Tensor = module(images.to(device))
        return features.float().cpu()

    def told(what: str, done: int, total: int) -> None:
        progress(what, done, total)
        if stop_requested():
            raise KeyboardInterrupt  # embeddings computed so far are kept

    try:
        with fast_pointwise(module):
            found = embedded(dataset, encode, named, views=config.data_views, progress=told)
    except KeyboardInterrupt:
        if not stop_requested():
            raise
        return None
    return replace(found, notes=(*found.notes, *encoder.notes))
