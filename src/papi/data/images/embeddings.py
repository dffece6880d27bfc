"""Embeds photos with a frozen encoder once, into a table on disk, `(N, 1 + 2V, D) float16`.

Each row holds the plain view of a photo, then V weak and V strong views. Random numbers are seeded by the photo's
pixels, and the encoder sees the views of one photo at a time, so a row depends only on photo, weights and recipe.

Rows are saved in pieces during the computation (`shelf`), so a kill loses only the piece in progress. Complete rows
are then combined into one table in the order of the photos.
"""

import errno
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from papi import distributed
from papi.data.dataset import Dataset, Progress, silent
from papi.data.images.lanes import in_lanes
from papi.data.images.photos import Photos, content_of
from papi.data.images.shelf import Row, Shelf
from papi.data.views import photos as views_of_photos
from papi.data.views.images import NormaliseImages
from papi.data.views.photos import PhotoViews
from papi.errors import UserError
from papi.files.places import cache_dir
from papi.networks.preparation import Preparation
from papi.randomness import draws, draws_by_row

FORMAT = 2  # version of the rows: increase it when views or their rounding change
PIECE = 64  # photos per piece: at most a few seconds of work are lost if the process is killed
_LARGEST = float(np.finfo(np.float16).max)

Encode = Callable[[Tensor], Tensor]
"""Maps normalised `(B, 3, size, size) float32` on the CPU to features `(B, D)`. Must be thread-safe."""


def embed(
    photos: Photos,
    encode: Encode,
    preparation: Preparation,
    checksum: str,
    *,
    views: int,
    progress: Progress = silent,
) -> np.ndarray:
    """The table `(N, 1 + 2 * views, D) float16` of photos, memory-mapped from the cache; missing rows are computed.

    `checksum` identifies the encoder and its weights. Photos are processed in parallel, as many as torch has threads.
    One thread decodes a photo and makes and encodes its views, so no core waits for another.
    """
    states = [photos.state(number) for number in range(len(photos))]
    shelf = Shelf(cache_dir() / "embeddings" / _recipe(preparation, checksum, views))
    table = shelf.table(states)
    if table is None:
        with _explained(shelf.folder):
            _embed_missing(shelf, states, Embedder(photos, encode, preparation, views), progress)
            table = shelf.assemble(states)
    return table


def embedded(dataset: Dataset, encode: Encode, checksum: str, *, views: int, progress: Progress = silent) -> Dataset:
    """A dataset of photos as one of features: all views of the training photos, the plain view of the test photos.

    It keeps its photos, which identify its data.
    """
    photos = dataset.photos
    assert photos is not None, "photos are embedded, and nothing else"
    told = partial(embed, encode=encode, preparation=photos.preparation, checksum=checksum, progress=progress)
    samples = told(photos[dataset.samples], views=views)
    tests = dataset.test_samples
    if tests is not None:
        tests = told(photos[tests], views=0)[:, 0].astype(np.float32)
    return replace(dataset, samples=samples, test_samples=tests, mean=(), std=()).measured()


def _recipe(preparation: Preparation, checksum: str, views: int) -> str:
    """A name for everything that a row depends on besides the photo."""
    recipe = views_of_photos
    made = (recipe.SMALLEST_PART, recipe.POLICY, recipe.ERASED, recipe.ERASED_ASPECT, recipe.GREY)
    return hashlib.sha256(repr((FORMAT, checksum, preparation, views, made)).encode()).hexdigest()[:32]


class Embedder:
    """Makes the row of one photo."""

    def __init__(self, photos: Photos, encode: Encode, preparation: Preparation, views: int) -> None:
        self.photos, self.encode, self.views = photos, encode, views
        self.make = PhotoViews(preparation)
        self.normalise = NormaliseImages(preparation.mean, preparation.std, torch.device("cpu"))

    @torch.inference_mode()
    def row(self, number: int, state: bytes, shelf: Shelf) -> Row:
        """Decode, make views and encode; only decode if the same pixels are already embedded."""
        photo = self.photos[number]
        content = content_of(photo)
        known = shelf.features(content)
        if known is not None:
            return Row(state, content, known)
        features = self.encode(self.inputs(photo, content))
        return Row(state, content, self._checked(features, number))

    def inputs(self, photo: np.ndarray, content: bytes) -> Tensor:
        """All views of a photo, normalised: `(1 + 2V, 3, size, size) float32`."""
        seed = int.from_bytes(content[:8], "little")
        made = [self.make.plain([photo])]
        for name in ("weak", "strong") if self.views else ():
            random = draws_by_row([draws(seed, f"{name} view of a photo", step=view) for view in range(self.views)])
            made.append(self.make(name, [photo] * self.views, random))
        return self.normalise(torch.cat(made))

    def _checked(self, features: Tensor, number: int) -> np.ndarray:
        """The features in their stored type. Raise a UserError if the encoder returns anything else."""
        rows = 1 + 2 * self.views
        if features.ndim != 2 or len(features) != rows:
            raise UserError(
                f"the encoder must return one vector per image; got shape {tuple(features.shape)} for {rows} images."
            )
        values = features.float().cpu().numpy()
        if not np.isfinite(values).all() or np.abs(values).max(initial=0) > _LARGEST:
            raise UserError(
                f"the encoder returns numbers for {self.photos.name(number)} that are not finite or larger than "
                f"{_LARGEST:,.0f}: check its weights, or remove the photo's row."
            )
        return values.astype(np.float16)


def _embed_missing(shelf: Shelf, states: Sequence[bytes], embedder: Embedder, progress: Progress) -> None:
    """Compute the missing rows and save them piece by piece."""
    shelf.look()
    numbers = {state: number for number, state in enumerate(states)}
    missing = [state for state in numbers if state not in shelf.by_state]
    pieces = [missing[start : start + PIECE] for start in range(0, len(missing), PIECE)]
    # Each process starts at a different piece and skips pieces that others have finished.
    first = len(pieces) * distributed.rank() // distributed.world_size()
    ends = {piece[-1] for piece in pieces}
    rows: list[Row] = []

    def wanted() -> Iterator[Callable[[], Row]]:
        for piece in (*pieces[first:], *pieces[:first]):
            if not shelf.learn(shelf.piece(piece)):
                yield from (partial(embedder.row, numbers[state], state, shelf) for state in piece)

    done = len(numbers) - len(missing)
    progress("embedding photos", done, len(numbers))
    try:
        for row in in_lanes(wanted()):
            rows.append(row)
            if row.state in ends:
                shelf.write_piece(rows)
                rows.clear()
            done += 1
            progress("embedding photos", done, len(numbers))
    except (UserError, KeyboardInterrupt):  # save finished rows
        if rows:
            shelf.write_piece(rows)
        raise


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Raise a UserError with a remedy if the cache cannot be written."""
    try:
        yield
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise UserError(
            f"the cache {folder} cannot store the embeddings ({what}): free disk space, or set the environment "
            "variable PAPI_CACHE to another folder; finished embeddings are kept."
        ) from error
