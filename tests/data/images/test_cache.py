"""The cache of decoded images: made once, found again, never half."""

import errno
import io
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import published_files as published
from papi.data.images import cache as caching
from papi.data.images.cache import Wanted, fingerprint, read_images
from papi.errors import UserError

COUNT = 70


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """So many images that they count as a large set here."""
    monkeypatch.setattr(caching, "SMALL", 10)
    names = [f"{k}.png" for k in range(COUNT)]
    published.write_images(tmp_path / "images", names, 12)
    return [tmp_path / "images" / name for name in names]


def expected(files: list[Path]) -> np.ndarray:
    return np.stack([np.asarray(Image.open(file)).transpose(2, 0, 1) for file in files])


@pytest.mark.parametrize("processes", [1, 2])
def test_built_once_and_mapped_after(
    processes: int, files: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int, int]] = []
    images = read_images(files, Wanted(), processes=processes, progress=lambda *call: calls.append(call))
    assert np.array_equal(images, expected(files))
    assert calls[-1] == ("decoding images", COUNT, COUNT)
    assert len(list(cache.rglob("*"))) == 2  # a folder with one file
    monkeypatch.setattr(caching, "find_target", None)  # a second start decodes nothing
    again = read_images(files, Wanted())
    assert isinstance(again, np.memmap)
    assert again.flags.writeable
    assert np.array_equal(again, images)


def test_a_changed_image_is_another_set(files: list[Path], tmp_path: Path) -> None:
    before = fingerprint(files, Wanted())
    assert fingerprint(files, Wanted(8)) != before
    assert fingerprint(files[::-1], Wanted()) != before
    elsewhere = Path(shutil.copytree(files[0].parent, tmp_path / "elsewhere" / "images"))  # keeps sizes and times
    assert fingerprint([elsewhere / file.name for file in files], Wanted()) != before
    published.write_images(files[0].parent, [files[0].name], 12, seed=5)
    assert fingerprint(files, Wanted()) != before
    read_images(files, Wanted())
    published.write_images(files[0].parent, [files[0].name], 12, seed=6)
    assert np.array_equal(read_images(files, Wanted()), expected(files))


def test_a_damaged_cache_is_made_again(files: list[Path], cache: Path) -> None:
    read_images(files, Wanted())
    [file] = cache.rglob("*.npy")
    file.write_bytes(file.read_bytes()[:1000])
    assert np.array_equal(read_images(files, Wanted()), expected(files))


def test_a_full_disk_leaves_nothing(files: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot take 0 MB of decoded images \(the disk is full\): make room"):
        read_images(files, Wanted(), processes=1)
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_is_really_full(files: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda path, *mode: io.FileIO("/dev/full", "wb"))
    with pytest.raises(UserError, match="the disk is full"):
        read_images(files, Wanted(), processes=1)
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bad_image_leaves_nothing(processes: int, files: list[Path], cache: Path) -> None:
    content = files[66].read_bytes()
    files[66].write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"66.png is damaged .*: replace the image, or take its row out"):
        read_images(files, Wanted(), processes=processes)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_all_bad_images_can_be_collected(files: list[Path], cache: Path) -> None:
    files[3].write_bytes(b"no image")
    files[4].unlink()
    files[4].symlink_to("nowhere.png")
    problems: list[str] = []
    with pytest.raises(FileNotFoundError):
        fingerprint(files, Wanted())
    files[4].unlink()
    files[4].write_bytes(b"")
    read_images(files, Wanted(), report=problems.append, processes=1)
    assert len(problems) == 2
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("sides", "wanted", "shape"),
    [
        ((12, 12), Wanted(), (1, 12, 12)),
        ((12, 13), Wanted(), (1, 64, 64)),
        ((200, 200), Wanted(), (1, 64, 64)),
        ((12, 13), Wanted(20), (1, 20, 20)),
        ((12, 12), Wanted(8, colour=True), (3, 8, 8)),
    ],
)
def test_one_shape_for_all(sides: tuple[int, int], wanted: Wanted, shape: tuple[int, ...], tmp_path: Path) -> None:
    for k, side in enumerate(sides):
        published.write_images(tmp_path, [f"{k}.png"], side, grey=True)
    assert read_images([tmp_path / "0.png", tmp_path / "1.png"], wanted).shape == (2, *shape)


def test_one_colour_image_makes_the_set_coloured(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["0.png"], grey=True)
    published.write_images(tmp_path, ["1.png"])
    assert read_images([tmp_path / "0.png", tmp_path / "1.png"], Wanted()).shape == (2, 3, 16, 16)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    assert caching.cache_dir() == cache
    monkeypatch.delenv("PAPI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert caching.cache_dir() == Path("/somewhere/papi")


def test_small_sets_are_not_kept(tmp_path: Path, cache: Path) -> None:
    published.write_images(tmp_path, ["0.png"])
    images: Any = read_images([tmp_path / "0.png"], Wanted())
    assert not isinstance(images, np.memmap)
    assert not list(cache.iterdir())
