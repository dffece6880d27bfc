"""Mini-ImageNet: all classes in one set, training and test images from each."""

from pathlib import Path

import numpy as np
import pytest

import published_files as published
from papi.data.dataset import silent
from papi.data.known.mini_imagenet import find_mini_imagenet, read_mini_imagenet
from papi.errors import UserError


def write_classes(folder: Path, images: int = 2, side: int = 20) -> None:
    for k in range(100):
        published.write_images(folder / f"n{k:03}", [f"{i}.png" for i in range(images)], side, seed=k)


def test_few_shot_splits_are_joined(tmp_path: Path) -> None:
    """Many copies have the classes in folders for few-shot learning; the numbers of classes do not depend on that."""
    write_classes(tmp_path / "plain")
    for k in range(100):
        split = ("train", "val", "test")[min(k // 64, 1) + (k >= 80)]
        (tmp_path / "split" / split).mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / f"n{k:03}").rename(tmp_path / "split" / split / f"n{k:03}")
    split_up = read_mini_imagenet(tmp_path / "split", silent)
    write_classes(tmp_path / "plain")
    plain = read_mini_imagenet(tmp_path / "plain", silent)
    assert split_up.class_names == plain.class_names == tuple(f"n{k:03}" for k in range(100))
    np.testing.assert_array_equal(split_up.samples, plain.samples)
    assert split_up.labels is not None
    assert plain.labels is not None
    np.testing.assert_array_equal(split_up.labels, plain.labels)


@pytest.mark.parametrize(("images", "tests"), [(2, 1), (6, 1)])
def test_one_image_in_six_is_for_testing(images: int, tests: int, tmp_path: Path) -> None:
    write_classes(tmp_path, images, side=6)
    found = read_mini_imagenet(tmp_path, silent)
    assert found.labels is not None
    assert found.test_labels is not None
    assert found.test_samples is not None
    assert np.bincount(found.labels).tolist() == [images - tests] * 100
    assert np.bincount(found.test_labels).tolist() == [tests] * 100
    assert found.samples.shape[1:] == (3, 84, 84)
    assert found.test_samples.shape[1:] == (3, 64, 64)


def test_a_class_needs_an_image_for_each_part(tmp_path: Path) -> None:
    write_classes(tmp_path)
    (tmp_path / "n042" / "1.png").unlink()
    with pytest.raises(UserError, match="n042 has 1 images: add at least two"):
        read_mini_imagenet(tmp_path, silent)


def test_all_classes_are_needed(tmp_path: Path) -> None:
    published.write_images(tmp_path / "n1", ["a.png"])
    with pytest.raises(UserError, match="1 class folders instead of 100"):
        read_mini_imagenet(tmp_path, silent)


@pytest.mark.parametrize("name", ["mini-imagenet", "miniImageNet", "mini_imagenet"])
def test_it_goes_by_several_names(name: str, tmp_path: Path) -> None:
    assert find_mini_imagenet(tmp_path) is None
    (tmp_path / name).mkdir()
    assert find_mini_imagenet(tmp_path) == tmp_path / name
