"""Chooses the default network for photos: a pretrained encoder, if one is available.

The record of the run contains the choice as if the user had made it, and a resumed run keeps it.
"""

from dataclasses import replace
from itertools import islice
from pathlib import Path

from papi import distributed
from papi.config import RunConfig
from papi.data.images.cache import DEFAULT_SIDE, LARGEST_KEPT
from papi.data.images.decode import ImageError, probe
from papi.data.known.sources import SOURCES
from papi.data.own.folders import image_files
from papi.errors import UserError
from papi.networks.pretrained import load_pretrained
from papi.runs.folder import RunFolder

ENCODERS = ("timm:tf_efficientnet_lite0.in1k", "hf:facebook/dinov2-small")  # the first is the one we measured
_LOOKED_AT = 20  # photos of a folder to inspect
_GAIN = 35  # percentage points, from the table in docs/photos.md


def with_network(config: RunConfig, folder: RunFolder) -> tuple[RunConfig, tuple[str, ...]]:
    """Return the config with an encoder for its photos if it names no network, and notes for the user."""
    if config.network is not None or config.preset != "quick" or config.data_size is not None:
        return config, ()
    if not holds_photos(config):
        return config, ()
    name, why = distributed.from_first(lambda: _chosen(folder))
    if name is None:
        return config, () if why is None else (_from_scratch(why),)
    note = f"photos are embedded by {name}, a frozen pretrained encoder; --network small trains from scratch."
    return replace(config, network=name), (note,)


def holds_photos(config: RunConfig) -> bool:
    """Return whether the data are a folder of images most of which are too large to be used at their original size."""
    place = Path(config.data)
    if config.data in SOURCES or not place.is_dir():
        return False
    large = []
    for file in islice(image_files(place), _LOOKED_AT):
        try:
            shape = probe(file)
        except ImageError:
            continue  # reported when the data are loaded
        large.append(max(shape.height, shape.width) > LARGEST_KEPT)
    return 2 * sum(large) > len(large)


def _chosen(folder: RunFolder) -> tuple[str | None, str | None]:
    """Return the encoder, or None and the reason why none is available. A resumed run keeps its choice."""
    record = folder.read_record()
    if record is not None:
        name = record.config.get("network")
        return (name if name in ENCODERS else None), None
    problems = []
    for name in ENCODERS:
        try:
            load_pretrained(name)
            return name, None
        except UserError as error:
            problems.append(str(error))
    return None, problems[0]


def _from_scratch(why: str) -> str:
    return (
        f"no pretrained encoder is available ({why.rstrip('.')}), so a network is trained from scratch on these photos "
        f"at {DEFAULT_SIDE} x {DEFAULT_SIDE} pixels. With one, accuracy was about {_GAIN} points higher in our tests: "
        f"--network {ENCODERS[0]}, see docs/photos.md."
    )
