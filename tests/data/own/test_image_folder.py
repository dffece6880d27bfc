"""A folder of images with its table: images and rows stay in step, and what is left out is told."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import published_files as published
from papi.data.dataset import Dataset, refuse, silent
from papi.data.images.kept import KeptPhotos
from papi.data.own.annotation_arrays import Annotations
from papi.data.own.annotations import Rules, read_annotations
from papi.data.own.image_folder import load_annotated, load_by_class, own_recipe
from papi.data.views.images import ImageViews
from papi.errors import UserError
from papi.networks.preparation import Preparation
from papi.randomness import draws

NAMES = [f"{k}.png" for k in range(8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos") / "photos"
    published.write_images(folder, NAMES, 9)
    return folder


def load(folder: Path, table: Path | None, problems: list[str] | None = None) -> tuple[Dataset, Annotations] | None:
    report = refuse if problems is None else problems.append
    rules = Rules(report=report)
    return load_annotated(folder, table, lambda file, names: read_annotations(file, rules, names), None, report, silent)


def table(path: Path, rows: list[tuple[str, bool]]) -> Path:
    lines = [f"{name},x|y,x,{'test' if test else 'train'}" for name, test in rows]
    path.write_text("\n".join(["file_name,candidates,label,split", *lines]) + "\n")
    return path


@given(st.permutations(NAMES), st.lists(st.booleans(), min_size=8, max_size=8).filter(lambda tests: not all(tests)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_images_follow_the_rows_of_the_table(folder: Path, tmp_path: Path, names: list[str], tests: list[bool]) -> None:
    found = load(folder, table(tmp_path / "t.csv", list(zip(names, tests, strict=True))))
    assert found is not None
    dataset, annotations = found
    assert dataset.file_names == annotations.file_names
    assert annotations.test.tolist() == sorted(tests)  # training images first
    assert set(annotations.file_names or ()) == set(names)
    in_order = load(folder, table(tmp_path / "all.csv", [(name, False) for name in NAMES]))
    assert in_order is not None
    for name, image in zip(dataset.file_names or (), dataset.samples, strict=True):
        np.testing.assert_array_equal(image, in_order[0].samples[NAMES.index(name)])


def test_images_without_a_row_are_counted(folder: Path, tmp_path: Path) -> None:
    found = load(folder, table(tmp_path / "t.csv", [(name, False) for name in NAMES[:5]]))
    assert found is not None
    assert found[0].notes == (f"skipped 3 images in {folder} that have no row in {tmp_path / 't.csv'}.",)


def test_a_row_with_a_problem_is_not_left_out_in_silence(folder: Path, tmp_path: Path) -> None:
    problems: list[str] = []
    rows = [(name, False) for name in [*NAMES, "missing.png", "../outside.png"]]
    found = load(folder, table(tmp_path / "t.csv", rows), problems)
    assert found is not None
    assert len(found[0].samples) == 8
    assert found[0].notes == ()
    assert len(problems) == 2
    assert "line 10 names 'missing.png', which is not in" in problems[0]
    assert "line 11 names '../outside.png', which is outside" in problems[1]


def test_no_table_is_no_error(folder: Path) -> None:
    assert load(folder, None) is None


def test_a_table_for_testing_only(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"t.csv has no usable training rows"):
        load(folder, table(tmp_path / "t.csv", [(name, True) for name in NAMES]))


def test_folders_of_classes(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["train/b/0.png", "train/a/0.png", "train/a/1.png", "test/b/9.png"])
    data = load_by_class(tmp_path, None, refuse, silent)
    assert data.class_names == ("a", "b")
    assert data.labels is not None
    assert data.test_labels is not None
    assert (data.labels.tolist(), data.test_labels.tolist()) == ([0, 0, 1], [1])
    assert data.file_names == ("train/a/0.png", "train/a/1.png", "train/b/0.png")


def test_a_class_that_is_only_tested(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["train/a/0.png", "train/b/0.png", "test/c/0.png"])
    with pytest.raises(UserError, match=r"test/c is a class that .*train does not have"):
        load_by_class(tmp_path, None, refuse, silent)


def test_a_folder_without_anything(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has neither a table of candidates nor one subfolder per class"):
        load_by_class(tmp_path, None, refuse, silent)


def test_the_size_is_told_where_it_was_chosen(tmp_path: Path) -> None:
    published.write_images(tmp_path, ["a/0.png", "b/0.png"], side=100)
    assert load_by_class(tmp_path, None, refuse, silent).samples.shape == (2, 3, 64, 64)
    assert "64 x 64 pixels" in load_by_class(tmp_path, None, refuse, silent).notes[0]
    chosen = load_by_class(tmp_path, 40, refuse, silent)
    assert chosen.samples.shape == (2, 3, 40, 40)
    assert not chosen.notes


@given(st.integers(1, 80), st.integers(1, 80))
@settings(max_examples=40)
def test_images_of_any_size_have_views(height: int, width: int) -> None:
    images = torch.full((3, 1, height, width), 9, dtype=torch.uint8)
    for name in ("weak", "strong"):
        assert ImageViews(own_recipe(height, width))(name, images, draws(0, name)).shape == images.shape


def test_photos_for_an_encoder_keep_their_sizes(tmp_path: Path) -> None:
    for k in range(10):
        published.write_images(tmp_path / ("train" if k < 6 else "test") / "ab"[k % 2], [f"{k}.png"], 30 + k)
    data = load_by_class(tmp_path, Preparation(size=28), refuse, silent)
    assert data.photos is not None
    assert data.test_samples is not None
    assert (data.kind, data.input_shape, len(data.photos)) == ("images", (3, 28, 28), 10)
    assert (data.samples.tolist(), data.test_samples.tolist()) == ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9])
    assert data.mean == Preparation().mean
    image = data.image(2, test=True)
    assert image is not None
    assert np.array_equal(image, data.photos[8])
    (tmp_path / "train" / "a" / "0.png").write_text("no image")
    with pytest.raises(UserError, match="not an image"):
        load_by_class(tmp_path, Preparation(size=28), refuse, silent)


def test_large_images_keep_their_proportions(tmp_path: Path) -> None:
    published.write_images(tmp_path / "a", ["0.png", "1.png"], 30)
    published.write_images(tmp_path / "b", ["2.png", "3.png"], 40)
    large, small = (load_by_class(tmp_path, size, refuse, silent) for size in (97, 96))
    assert isinstance(large.photos, KeptPhotos)
    assert large.input_shape == (3, 97, 97)
    assert large.photos[3].shape == (3, 111, 111)
    assert small.photos is None
    assert small.samples.shape[1:] == (3, 96, 96)
