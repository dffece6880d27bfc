"""The cache of decoded images: made once, found again, never half."""

import errno
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import published_files as published
from papi.data.dataset import refuse, silent
from papi.data.images import cache as caching
from papi.data.images.cache import Wanted, find_faults, fingerprint, read_images
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


def kept(cache: Path) -> list[Path]:
    """The files in the cache."""
    return [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("processes", [1, 2])
def test_built_once_and_mapped_after(processes: int, files: list[Path], cache: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    images = read_images(files, Wanted(), processes=processes, progress=lambda *call: calls.append(call))
    assert np.array_equal(images, expected(files))
    assert calls[-1] == ("decoding images", COUNT, COUNT)
    [file] = kept(cache)
    built = file.stat()
    calls.clear()
    again = read_images(files, Wanted(), progress=lambda *call: calls.append(call))
    assert not calls  # a second start looks at no image
    assert file.stat() == built
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
    whole = file.read_bytes()
    for spoilt in (whole[:1000], whole.replace(b"}", b" ", 1)):
        file.write_bytes(spoilt)
        assert np.array_equal(read_images(files, Wanted()), expected(files))
    assert file.read_bytes() == whole


def test_a_pipe_in_the_cache_is_not_waited_for(files: list[Path], cache: Path) -> None:
    read_images(files, Wanted())
    [file] = cache.rglob("*.npy")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="cache"):
        read_images(files, Wanted())


def test_a_full_disk_leaves_nothing(files: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot take 0 MB of decoded images \(the disk is full\): free disk space"):
        read_images(files, Wanted(), processes=1)
    assert not kept(cache)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process may become longer."""
    resource = pytest.importorskip("resource", reason="this system has no limits for files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_to_its_end(files: list[Path], cache: Path) -> None:
    with files_of_at_most(5000), pytest.raises(UserError, match=r"cannot take 0 MB .* set .* PAPI_CACHE to another"):
        read_images(files, Wanted(), processes=1)
    assert not kept(cache)
    assert np.array_equal(read_images(files, Wanted(), processes=1), expected(files))


def test_a_cache_that_cannot_be_made(files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    monkeypatch.setenv("PAPI_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"the cache .*file/images cannot take .* \(Not a directory\)"):
        read_images(files, Wanted(), processes=1)


def test_runs_that_build_it_at_once_end_with_one_file(files: list[Path], cache: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(lambda _: read_images(files, Wanted(), processes=1), range(3)))
    assert all(np.array_equal(images, expected(files)) for images in built)
    assert len(kept(cache)) == 1


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bad_image_leaves_nothing(processes: int, files: list[Path], cache: Path) -> None:
    content = files[66].read_bytes()
    files[66].write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"66.png is damaged .*: replace the image, or remove its row"):
        read_images(files, Wanted(), processes=processes)
    assert not kept(cache)


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
    assert not kept(cache)


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


def test_small_sets_are_not_kept(tmp_path: Path, cache: Path) -> None:
    published.write_images(tmp_path, ["0.png"])
    images = read_images([tmp_path / "0.png"], Wanted())
    assert not isinstance(images, np.memmap)
    assert not list(cache.iterdir())


def test_damage_behind_a_good_header_is_found_if_problems_are_collected(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3), np.uint8)
    photos = [tmp_path / f"{k}.jpg" for k in range(3)]
    for photo in photos:
        Image.fromarray(noise).save(photo)
    photos[1].write_bytes(photos[1].read_bytes()[:-800])
    find_faults(photos, refuse, silent)  # such a photo is refused when it is used
    said: list[str] = []
    find_faults(photos, said.append, silent)
    assert len(said) == 1
    assert said[0].startswith(f"{photos[1]} is damaged")
