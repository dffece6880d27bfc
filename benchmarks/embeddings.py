"""Embedding photos with a frozen encoder, against its forward passes alone on precomputed views."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks.image_cache import write_files
from benchmarks.measure import Line, beyond, in_turns
from papi.data.images.embeddings import Embedder, embed
from papi.data.images.lanes import in_lanes
from papi.data.images.photos import Photos, content_of
from papi.networks import build
from papi.networks.pointwise import fast_pointwise
from papi.networks.preparation import Preparation

PHOTOS, SIDE = 64, 400  # one piece of the cache, so that saving it counts as it does for thousands of photos
VIEWS = 4  # weak views, and as many strong ones
BATCH = 36
LITE0 = "efficientnet_lite_pytorch"


def encoder() -> nn.Module:
    """A small encoder: EfficientNet-Lite0 if it is installed, otherwise a ResNet-18."""
    if find_spec(LITE0) is None:
        return build("resnet18", (3, 224, 224), 10, project=False).encoder.eval()
    network: nn.Module = import_module(LITE0).EfficientNet.from_name("efficientnet-lite0")
    return network.eval()


def measure(quick: bool) -> Iterator[Line]:
    if quick:
        return
    preparation = Preparation(interpolation="bicubic")
    network = encoder().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def encode(images: Tensor) -> Tensor:
        features: Tensor = network(images)
        return features

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        photos = Photos(write_files(work / "photos", PHOTOS, SIDE), preparation)
        embedder = Embedder(photos, encode, preparation, VIEWS)
        prepared = [embedder.inputs(photo, content_of(photo)) for photo in map(photos.__getitem__, range(PHOTOS))]
        batches = torch.split(torch.cat(prepared), BATCH)

        @torch.inference_mode()
        def bare(images: Tensor) -> Tensor:
            return encode(images)

        def in_batches() -> None:
            for batch in batches:
                bare(batch)

        def one_photo_a_thread() -> None:
            for _ in in_lanes(partial(bare, views) for views in prepared):
                pass

        def ours() -> None:
            with tempfile.TemporaryDirectory(dir=work) as cache, patch.dict(os.environ, PAPI_CACHE=cache):
                embed(photos, encode, preparation, "benchmark", views=VIEWS)

        with fast_pointwise(network):
            ours()
            plain, own, whole = in_turns([in_batches, one_photo_a_thread, ours], times=3)
    item = f"embedding {PHOTOS} photos of {SIDE} px, {1 + 2 * VIEWS} views each"
    yield beyond(f"{item}, overhead over forward passes", min(plain, own), whole, 0.1)
