"""Photos that are decoded once: the same pixels from a file, which is whole or is made again."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from papi.data.images import kept
from papi.data.images.kept import KeptPhotos, keep
from papi.data.images.photos import Photos
from papi.errors import UserError
from papi.networks.preparation import Preparation

SMALL = Preparation(size=14)
COUNT = 9


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "photos" / f"{k}.png" for k in range(COUNT)]
    paths[0].parent.mkdir()
    for k, path in enumerate(paths):
        pixels = np.random.default_rng(k).integers(0, 256, (18 + k, 30 - k, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    return paths


def assert_same(found: Photos, photos: Photos) -> None:
    assert len(found) == len(photos)
    for number in (*range(len(photos)), 0):
        assert np.array_equal(found[number], photos[number])


@pytest.mark.parametrize("processes", [1, 2])
def test_decoded_once(files: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setattr(kept, "_FEW", 2)
    photos, calls = Photos(files, SMALL), []
    found = keep(photos, processes=processes, progress=lambda *call: calls.append(call))
    assert isinstance(found, KeptPhotos)
    assert_same(found, photos)
    assert calls[-1] == ("decoding photos", COUNT, COUNT)
    [file] = (path for path in cache.rglob("*") if path.is_file())
    built = file.stat()
    calls.clear()
    assert_same(keep(photos, progress=lambda *call: calls.append(call)), photos)
    assert not calls
    assert file.stat() == built


def test_another_set_or_size_is_another_file(files: list[Path], cache: Path) -> None:
    for photos in (Photos(files, SMALL), Photos(files[1:], SMALL), Photos(files, Preparation(size=21))):
        assert_same(keep(photos), photos)
    assert len(list((cache / "photos").iterdir())) == 3


def test_some_of_them_are_the_same_photos(files: list[Path]) -> None:
    assert_same(keep(Photos(files, SMALL))[3:5], Photos(files[3:5], SMALL))


def test_a_damaged_file_is_made_again(files: list[Path], cache: Path) -> None:
    photos = Photos(files, SMALL)
    keep(photos)
    [file] = (cache / "photos").iterdir()
    content = file.read_bytes()
    for spoilt in (b"", content[:20], content[:-4], content[4:], content + b"more"):
        file.write_bytes(spoilt)
        assert_same(keep(photos), photos)


def test_photos_in_memory_stay_there(cache: Path) -> None:
    photos = Photos([Image.new("RGB", (20, 20 + k)) for k in range(3)], SMALL)
    assert keep(photos) is photos
    assert not list(cache.iterdir())


def test_a_photo_that_cannot_be_read(files: list[Path], cache: Path) -> None:
    files[4].write_bytes(files[4].read_bytes()[:50])
    with pytest.raises(UserError, match=r"4\.png is damaged"):
        keep(Photos(files, SMALL))
    files[6].write_text("no photo")
    problems: list[str] = []
    assert len(keep(Photos(files, SMALL), report=problems.append)) == COUNT
    assert len(problems) == 2, "all of them are told"
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_cache_that_takes_nothing(files: list[Path], cache: Path) -> None:
    (cache / "photos").write_text("in the way")
    with pytest.raises(UserError, match="PAPI_CACHE"):
        keep(Photos(files, SMALL))
