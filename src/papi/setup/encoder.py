"""The pretrained encoder of a run: which one it is, and what it says about photos."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from papi.config import RunConfig
from papi.data.dataset import Dataset, Progress, silent
from papi.data.images.embeddings import embedded
from papi.data.images.kept import keep
from papi.errors import UserError
from papi.networks.card import EncoderCard
from papi.networks.pretrained import Pretrained, is_pretrained, load_pretrained
from papi.randomness import seed_torch
from papi.runs.schema import Record
from papi.training.devices import find_device


def with_tuning(config: RunConfig) -> RunConfig:
    """What is trained of the encoder, if there is a pretrained one: the head, unless a person says otherwise."""
    pretrained = config.network is not None and (
        is_pretrained(config.network) or (":" in config.network and (config.tune or config.weights != "default"))
    )
    if not pretrained:
        asked = {"--tune": config.tune, "--head": config.head, "--weights": config.weights != "default" or None}
        for option, value in asked.items():
            if value is not None:
                raise UserError(
                    f"{option} is for pretrained encoders, and {config.network or 'the default network'} is none: "
                    "name one with --network, like timm:NAME or hf:NAME, or leave it out."
                )
        return config
    return replace(config, tune=config.tune or "head")


def find_encoder(config: RunConfig, *, fetch: bool = True) -> Pretrained | None:
    """The pretrained encoder that a config names, with its weights; None if it names none.

    A config out of a file gets nothing fetched.
    """
    if config.tune is None:
        return None
    assert config.network is not None, "what is tuned has a name"
    seed_torch(config.seed, "encoder")  # for random weights
    return load_pretrained(config.network, config.weights, config.data_size, fetch=fetch)


def encoder_of(record: Record, config: RunConfig, path: Path, *, fetch: bool) -> Pretrained | None:
    """The pretrained encoder of a run on disk. Stop if its weights are no longer those of the run."""
    encoder = find_encoder(config, fetch=fetch)
    known = record.identity.get("encoder") or {}
    if encoder is not None and encoder.checksum != known.get("checksum"):
        raise UserError(
            f"{path} was trained with other weights of {encoder.reference} than there are now: bring back those, or "
            "train a new run."
        )
    return encoder


def card_of_encoder(encoder: Pretrained, config: RunConfig) -> EncoderCard:
    """What the files of a run say about it."""
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
) -> Dataset | None:
    """A dataset as the network gets it: photos become features of a frozen encoder, from the cache where it has them.

    None if that was stopped.
    """
    if encoder is None or dataset.photos is None:
        return dataset
    if config.tune != "head":
        return replace(dataset, photos=keep(dataset.photos, progress=progress))  # they are seen in every epoch
    device = find_device(config.device)
    module = encoder.encoder.to(device)

    def encode(images: Tensor) -> Tensor:
        features: Tensor = module(images.to(device))
        return features.float().cpu()

    def told(what: str, done: int, total: int) -> None:
        progress(what, done, total)
        if stop_requested():
            raise KeyboardInterrupt  # what is embedded so far is kept

    try:
        found = embedded(dataset, encode, encoder.checksum, views=config.data_views, progress=told)
    except KeyboardInterrupt:
        if not stop_requested():
            raise
        return None
    return replace(found, notes=(*found.notes, *encoder.notes))
