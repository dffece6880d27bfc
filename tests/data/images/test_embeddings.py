"""The cache of embeddings: each photo is embedded once, and its row depends on nothing but itself."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from papi.data.dataset import Dataset, Progress
from papi.data.digest import data_hash
from papi.data.images import embeddings
from papi.data.images.embeddings import embed, embedded
from papi.data.images.photos import Photos
from papi.data.views.images import NormaliseImages
from papi.data.views.photos import PhotoViews
from papi.errors import UserError
from papi.networks.preparation import Preparation
from papi.randomness import draws

SMALL = Preparation(size=14)
COUNT = 11


class Encoder:
    """Sums over a coarse grid; counts the images it has seen."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, images: Tensor) -> Tensor:
        assert images.dtype == torch.float32
        self.seen += len(images)
        return torch.nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)


def write_photo(file: Path, seed: int) -> Path:
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(coarse).resize((20 + seed, 22), Image.Resampling.BICUBIC).save(file)
    return file


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(embeddings, "PIECE", 3)
    return [write_photo(tmp_path / f"{k}.png", k) for k in range(COUNT)]


def table(files: list[Path], encoder: Encoder, checksum: str = "sum", views: int = 2) -> np.ndarray:
    return embed(Photos(files, SMALL), encoder, SMALL, checksum, views=views)


def test_the_plain_view_comes_first_then_weak_ones_then_strong_ones(files: list[Path]) -> None:
    encoder = Encoder()
    made = table(files, encoder)
    assert made.shape == (COUNT, 5, 12)
    assert made.dtype == np.float16
    assert encoder.seen == 5 * COUNT
    photos, normalise = Photos(files, SMALL), NormaliseImages(SMALL.mean, SMALL.std, torch.device("cpu"))
    plain = PhotoViews(SMALL)("plain", [photos[k] for k in range(COUNT)], draws(0, "none"))
    assert np.array_equal(made[:, 0], encoder(normalise(plain)).half().numpy())
    others = made[:, 1:].astype(np.float32)
    assert len(np.unique(others.reshape(-1, 12), axis=0)) == 4 * COUNT, "all views differ"


def test_a_second_time_nothing_is_computed(files: list[Path], cache: Path) -> None:
    first, encoder = table(files, Encoder()), Encoder()
    [kept] = (file for file in cache.rglob("*") if file.is_file())
    again = table(files, encoder)
    assert encoder.seen == 0
    assert np.array_equal(first, again)
    assert isinstance(again.base, np.memmap) or isinstance(again, np.memmap)
    assert kept.exists()
    torch.from_numpy(again)[torch.tensor([1, 2])]  # as the loader takes rows


def test_pieces_left_beside_their_table_are_removed(files: list[Path], cache: Path) -> None:
    """As after a kill between the two."""
    with pytest.raises(KeyboardInterrupt):
        embed(Photos(files, SMALL), Encoder(), SMALL, "sum", views=2, progress=_stopping_after(7))
    pieces = {file: file.read_bytes() for file in cache.rglob("piece-*.npy")}
    assert pieces
    made = table(files, Encoder()).copy()
    for file, content in pieces.items():
        file.write_bytes(content)
    encoder = Encoder()
    assert np.array_equal(table(files, encoder), made)
    assert encoder.seen == 0
    assert not list(cache.rglob("piece-*.npy"))


def _stopping_after(photos: int) -> Progress:
    def progress(what: str, done: int, total: int) -> None:
        if done == photos:
            raise KeyboardInterrupt

    return progress


def test_a_row_does_not_depend_on_its_place_or_on_the_others(files: list[Path], tmp_path: Path) -> None:
    whole, encoder = table(files, Encoder()), Encoder()
    moved = [Path(shutil.copy(files[k], tmp_path / f"elsewhere-{k}.png")) for k in (7, 2)]
    assert np.array_equal(table(moved, encoder), whole[[7, 2]])
    assert encoder.seen == 0, "known by their pixels"
    alone = embed(Photos([Image.open(files[5])], SMALL), encoder, SMALL, "another name of the same", views=2)
    assert encoder.seen == 5
    assert np.array_equal(alone[0], whole[5])


def test_a_set_that_grew(files: list[Path], tmp_path: Path) -> None:
    table(files, Encoder())
    encoder = Encoder()
    grown = [write_photo(tmp_path / "new.png", 40), *files, files[3]]
    made = table(grown, encoder)
    assert encoder.seen == 5
    assert np.array_equal(made[1:-1], table(files, encoder))
    assert np.array_equal(made[-1], made[4])
    assert encoder.seen == 5


def test_a_photo_that_changed(files: list[Path]) -> None:
    before, encoder = table(files, Encoder()), Encoder()
    write_photo(files[4], 30)
    after = table(files, encoder)
    assert encoder.seen == 5
    assert (before != after).any((1, 2)).nonzero()[0].tolist() == [4]


def test_another_encoder_or_recipe_is_another_table(files: list[Path]) -> None:
    for checksum, views in (("sum", 2), ("other", 2), ("sum", 1)):
        encoder = Encoder()
        table(files, encoder, checksum, views)
        assert encoder.seen == (1 + 2 * views) * COUNT


class Interrupted(Encoder):
    """Works for a while."""

    def __call__(self, images: Tensor) -> Tensor:
        if self.seen >= 35:
            raise KeyboardInterrupt
        return super().__call__(images)


def test_what_is_embedded_is_kept(files: list[Path], cache: Path) -> None:
    whole = table(files, Encoder(), "twin")
    with pytest.raises(KeyboardInterrupt):
        table(files, Interrupted())
    encoder = Encoder()
    assert np.array_equal(table(files, encoder), whole)
    assert encoder.seen == 5 * (COUNT - 7), "seven were done before"
    assert len([file for file in cache.rglob("*") if file.is_file()]) == 2, "pieces are gone once they are in a table"


def test_a_photo_in_the_middle_that_cannot_be_read(files: list[Path]) -> None:
    spoilt = files[6].read_bytes()
    files[6].write_bytes(spoilt[:60])
    with pytest.raises(UserError, match=r"6\.png is damaged"):
        table(files, Encoder())
    files[6].write_bytes(spoilt)
    encoder = Encoder()
    table(files, encoder)
    assert encoder.seen <= 5 * (COUNT - 6), "those before it are kept"


def test_damaged_files_are_made_again(files: list[Path], cache: Path) -> None:
    whole = np.array(table(files, Encoder()))
    [kept] = (file for file in cache.rglob("*") if file.is_file())
    content = kept.read_bytes()
    for spoilt in (
        b"",
        content[:100],
        content[:-5],
        content.replace(b"features", b"feature!"),
        content.replace(b"}", b" "),
    ):
        kept.write_bytes(spoilt)
        encoder = Encoder()
        assert np.array_equal(table(files, encoder), whole)
        assert encoder.seen == 5 * COUNT


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(files: list[Path], cache: Path) -> None:
    whole = np.array(table(files, Encoder()))
    [kept] = (file for file in cache.rglob("*") if file.is_file())
    os.mkfifo(kept.with_name("piece-0.npy"))
    files.append(write_photo(files[0].with_name("new.png"), COUNT))
    assert np.array_equal(table(files, Encoder())[:COUNT], whole)


def test_threads_do_not_matter(files: list[Path]) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        several = table(files, Encoder(), "three")
        assert torch.get_num_threads() == 3
        torch.set_num_threads(1)
        assert np.array_equal(several, table(files, Encoder(), "one"))
    finally:
        torch.set_num_threads(threads)


def test_progress_counts_photos(files: list[Path]) -> None:
    calls: list[tuple[str, int, int]] = []
    embed(Photos(files, SMALL), Encoder(), SMALL, "sum", views=1, progress=lambda *call: calls.append(call))
    assert calls == [("embedding photos", done, COUNT) for done in range(COUNT + 1)]


@pytest.mark.parametrize(
    ("encode", "word"),
    [
        (lambda images: images, r"one vector per image; got shape \(9, 3, 14, 14\) for 9 images"),
        (lambda images: images.mean(), r"one vector per image; got shape \(\) for 9 images"),
        (lambda images: images.flatten(1)[:3], r"one vector per image; got shape \(3, 588\) for 9 images"),
        (lambda images: images.flatten(1) / 0, "not finite"),
        (lambda images: images.flatten(1) * 1e6, "larger than"),
    ],
)
def test_an_encoder_that_gives_something_else(files: list[Path], cache: Path, encode: Encoder, word: str) -> None:
    with pytest.raises(UserError, match=word):
        embed(Photos(files, SMALL), encode, SMALL, "odd", views=4)
    assert not list(cache.rglob("*.npy"))


def test_a_disk_that_takes_nothing(files: list[Path], cache: Path) -> None:
    (cache / "embeddings").write_text("in the way")
    with pytest.raises(UserError, match="PAPI_CACHE"):
        table(files, Encoder())


def test_a_dataset_becomes_one_of_features(files: list[Path]) -> None:
    photos, encoder = Photos(files, SMALL), Encoder()
    data = Dataset("photos", ("a", "b"), np.arange(COUNT), (), (), labels=np.arange(COUNT) % 2, photos=photos)
    apart = data.with_held_out(0.3, seed=0)
    assert apart.test_samples is not None
    made = embedded(apart, encoder, "sum", views=2)
    tests = len(apart.test_samples)
    assert encoder.seen == 5 * (COUNT - tests) + tests, "of test photos, the plain view alone"
    assert made.kind == "features"
    assert made.input_shape == (12,)
    assert made.test_samples is not None
    assert made.test_samples.shape == (tests, 12)
    whole = table(files, Encoder())
    assert np.array_equal(made.samples, whole[apart.samples])
    assert np.array_equal(made.test_samples, whole[apart.test_samples, 0])
    sets = np.ones((len(made.samples), 2), bool)
    assert data_hash(made, sets) == data_hash(apart, sets), "the photos tell it from others, embedded or not"
    assert data_hash(made, sets) != data_hash(data.with_held_out(0.3, seed=1), sets)
