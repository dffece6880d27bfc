"""Embeds photos with a slow little encoder that notes each photo it sees, in a process that a test kills."""

import hashlib
import os
import time
from pathlib import Path

import torch
from torch import Tensor

from papi.data.images import embeddings
from papi.data.images.photos import Photos
from papi.networks.preparation import Preparation

PREPARATION = Preparation(size=14)
VIEWS = 2
PIECE = 3


def photos_in(folder: Path) -> Photos:
    return Photos(sorted(folder.iterdir()), PREPARATION)


def name_of(view: Tensor) -> str:
    """What stands for a photo in the notes: its plain view."""
    return hashlib.sha256(view.numpy().tobytes()).hexdigest()


def run(folder: Path, cache: Path, notes: Path, seconds: float) -> None:
    """Embed all photos in `folder`; the encoder takes so many seconds for each."""
    os.environ["PAPI_CACHE"] = str(cache)
    embeddings.PIECE = PIECE
    torch.set_num_threads(2)
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def encode(images: Tensor) -> Tensor:
        os.write(file, f"{name_of(images[0])}\n".encode())
        time.sleep(seconds)
        return torch.nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)

    embeddings.embed(photos_in(folder), encode, PREPARATION, "slow", views=VIEWS)
