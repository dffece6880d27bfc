"""Inputs of a trained model: every sample once and in order, whatever the files and however many at a time."""

import csv
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import published_files as published
from papi.data.dataset import Report
from papi.data.images.decode import Target, decode, decode_photo
from papi.data.own import incoming
from papi.data.own.incoming import Part, count_samples
from papi.data.views.photos import PhotoViews
from papi.errors import UserError
from papi.networks.preparation import Preparation

GREY = (1, 6, 5)


def images(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *GREY), np.uint8)


def sound(problem: str) -> None:
    raise AssertionError(problem)


def read(paths: Sequence[Path], shape: tuple[int, ...] = GREY, size: int = 4) -> tuple[list[Part], list[str]]:
    problems: list[str] = []
    parts = list(read_parts(paths, shape, size, problems.append))
    return parts, problems


def together(parts: Sequence[Part]) -> np.ndarray:
    return np.concatenate([part.samples for part in parts])


def read_parts(
    paths: Sequence[Path], shape: tuple[int, ...], size: int, report: Report, preparation: Preparation | None = None
) -> Iterator[Part]:
    """The parts that have samples, read one after another."""
    for read in incoming.read_parts(paths, shape, size, report, preparation):
        part = read()
        for problem in part.problems:
            report(problem)
        if len(part.samples):
            yield part


def write_photos(folder: Path, count: int) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{k:02}.png" for k in range(count)]
    for path, image in zip(paths, images(count), strict=True):
        Image.fromarray(image[0]).save(path)
    return paths


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.integers(1, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_arrays_come_part_by_part(tmp_path: Path, counts: list[int], size: int) -> None:
    paths = [tmp_path / f"{k}.npy" for k in range(len(counts))]
    for k, (path, count) in enumerate(zip(paths, counts, strict=True)):
        np.save(path, images(count, seed=k))
    parts = list(read_parts(paths, GREY, size, sound))
    assert all(0 < len(part.samples) <= size for part in parts)
    found = [(name, row) for part in parts for name, row in zip(part.files, part.rows or (), strict=True)]
    assert found == [(str(path), row) for path, count in zip(paths, counts, strict=True) for row in range(count)]
    expected = [images(count, seed=k) for k, count in enumerate(counts)]
    if sum(counts):
        np.testing.assert_array_equal(together(parts), np.concatenate(expected))
    assert count_samples(paths, GREY) == sum(counts)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_neighbouring_photos_share_a_part(tmp_path: Path, first: int, second: int, size: int) -> None:
    one, two = tmp_path / f"one{first}", tmp_path / f"two{second}"
    paths = [*write_photos(one, first), *write_photos(two, second)]
    parts = list(read_parts([one, *paths[first:]], GREY, size, sound))
    assert [len(part.samples) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert [name for part in parts for name in part.files] == [str(path) for path in paths]
    assert all(part.rows is None for part in parts)
    expected = [decode(path, Target(6, 5, 1)) for path in paths]
    np.testing.assert_array_equal(together(parts), np.stack(expected))
    assert count_samples([one, two], GREY) == first + second


def test_order_is_kept_between_kinds(tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "photos", 3)
    np.save(tmp_path / "array.npy", images(2, seed=5))
    parts, problems = read([photos[0], tmp_path / "array.npy", *photos[1:]])
    assert not problems
    files = [name for part in parts for name in part.files]
    assert files == [str(photos[0]), *[str(tmp_path / "array.npy")] * 2, str(photos[1]), str(photos[2])]


@pytest.mark.parametrize("layout", ["channels first", "channels last", "no channel"])
def test_layouts_of_arrays(layout: str, tmp_path: Path) -> None:
    wanted = images(5)
    array = {"channels first": wanted, "channels last": wanted.transpose(0, 2, 3, 1), "no channel": wanted[:, 0]}[
        layout
    ]
    np.save(tmp_path / "a.npy", np.ascontiguousarray(array))
    np.testing.assert_array_equal(together(read([tmp_path / "a.npy"])[0]), wanted)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_name_their_samples(save: object, tmp_path: Path) -> None:
    assert callable(save)
    save(tmp_path / "a.npz", labels=np.arange(3), images=images(3))
    np.testing.assert_array_equal(together(read([tmp_path / "a.npz"])[0]), images(3))
    save(tmp_path / "b.npz", whatever=images(3))
    np.testing.assert_array_equal(together(read([tmp_path / "b.npz"])[0]), images(3))
    save(tmp_path / "c.npz", one=images(3), two=images(3))
    parts, problems = read([tmp_path / "c.npz"])
    assert not parts
    assert "rename the array to use to images" in problems[0]


def test_features_in_arrays_and_tables(tmp_path: Path) -> None:
    features = np.array([[1, 2.5], [3, -4], [5, 6]])
    np.save(tmp_path / "f.npy", features)
    with (tmp_path / "f.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["file_name", "x", "candidates", "y"])
        writer.writerows([f"{k}.png", x, "cat|dog", y] for k, (x, y) in enumerate(features))
    for name in ("f.npy", "f.csv"):
        parts, problems = read([tmp_path / name], shape=(2,), size=2)
        assert not problems
        assert [len(part.samples) for part in parts] == [2, 1]
        np.testing.assert_array_equal(together(parts), features.astype(np.float32))
        assert together(parts).dtype == np.float32
    assert count_samples([tmp_path / "f.csv"], (2,)) is None  # only reading tells


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "1e300"])
def test_rows_that_are_not_finite_are_left_out(value: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(f"x,y\n1,2\n3,{value}\n5,6\n")
    parts, problems = read([tmp_path / "f.csv"], shape=(2,))
    assert together(parts).tolist() == [[1, 2], [5, 6]]
    assert [list(part.rows or ()) for part in parts] == [[0, 2]]
    assert problems == [f"{tmp_path / 'f.csv'}, row 1 has a feature that is not a finite number."]


def test_short_rows_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("x,y\n1,2\n3\n\n5,6\n")
    parts, problems = read([tmp_path / "f.csv"], shape=(2,))
    assert together(parts).tolist() == [[1, 2], [5, 6]]
    assert len(problems) == 1


def damaged_array(path: Path) -> None:
    np.save(path, images(6))
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.npy", b"nothing", "is not a NumPy array file"),
        ("a.npz", b"nothing", "cannot be read"),
        ("a.png", b"nothing", "is not an image that can be read"),
        ("a.png", b"", "is not an image that can be read"),
    ],
)
def test_damaged_files_are_reported_and_the_others_are_read(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    good = write_photos(tmp_path / "good", 2)
    (tmp_path / name).write_bytes(content)
    parts, problems = read([good[0], tmp_path / name, good[1]])
    assert [file for part in parts for file in part.files] == [str(path) for path in good]
    assert len(problems) == 1
    assert problems[0].startswith(f"{tmp_path / name} {says}")


def test_an_array_that_ends_early_gives_what_it_has(tmp_path: Path) -> None:
    damaged_array(tmp_path / "a.npy")
    parts, problems = read([tmp_path / "a.npy"], size=2)
    np.testing.assert_array_equal(together(parts), images(6)[:4])
    assert problems == [f"{tmp_path / 'a.npy'} ends after 4 of 6 samples."]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((3, 7, 5), np.uint8), r"have shape \(7, 5\), but this model needs \(1, 6, 5\)"),
        (np.zeros((3, 6, 5)), "have type float64: use uint8"),
        (np.array([["a"]], object), "contains Python objects"),
        (np.asfortranarray(np.zeros((3, 6, 5), np.uint8)), "contains a column-major array"),
        (np.uint8(3), "contains a single value"),
    ],
)
def test_arrays_of_another_form(array: np.ndarray, says: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    parts, problems = read([tmp_path / "a.npy"])
    assert not parts
    with pytest.raises(AssertionError, match=says):
        sound(problems[0])


def test_models_of_features_take_no_photos_and_the_other_way_round(tmp_path: Path) -> None:
    [photo] = write_photos(tmp_path, 1)
    assert "this model needs 2 features: use .npy, .npz or .csv" in read([photo], shape=(2,))[1][0]
    (tmp_path / "f.csv").write_text("x,y\n1,2\n")
    assert "is a feature table, but this model needs images" in read([tmp_path / "f.csv"])[1][0]
    assert "has 2 feature columns, but this model needs 3" in read([tmp_path / "f.csv"], shape=(3,))[1][0]
    np.save(tmp_path / "a.npy", images(2))
    assert "this model needs (3,)" in read([tmp_path / "a.npy"], shape=(3,))[1][0]


def test_csv_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b"x,y\n1,2\n\xff,3\n")
    parts, problems = read([tmp_path / "f.csv"], shape=(2,))
    assert not parts
    assert "is not valid UTF-8 csv" in problems[0]


def test_a_path_that_does_not_exist_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    [photo] = write_photos(tmp_path, 1)
    with pytest.raises(UserError, match=r"none.png does not exist"):
        next(read_parts([photo, tmp_path / "none.png"], GREY, 4, sound))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes among files")
def test_named_pipes_are_not_waited_for(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["a.png"], grey=True)
    os.mkfifo(tmp_path / "p.png")
    parts, problems = read([tmp_path])
    assert len(together(parts)) == 1
    assert problems == [f"{tmp_path / 'p.png'} is not a regular file."]


def test_photos_for_an_encoder_are_squares_from_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    pixels = np.random.default_rng(0).integers(0, 256, (32, 50, 3), np.uint8)
    Image.fromarray(pixels).save(file)
    preparation = Preparation(size=28)
    [part] = read_parts([file], (28,), 4, sound, preparation)
    np.testing.assert_array_equal(part.samples[0], pixels[2:30, 11:39].transpose(2, 0, 1))
    plain = PhotoViews(preparation).plain([decode_photo(file, preparation)])
    np.testing.assert_array_equal(part.samples, plain.numpy())
