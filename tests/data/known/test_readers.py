"""Readers of published files: what they hold comes out unchanged, and damage is named."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import published_files as published
from papi.data.known.published import inside_package
from papi.data.known.readers import (
    read_cifar10,
    read_cifar100,
    read_digits,
    read_fashion_mini,
    read_idx,
    read_idx_folder,
    read_mnist_like,
    read_svhn,
)
from papi.errors import UserError


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.sampled_from(["", ".gz"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_idx_files_of_any_shape(tmp_path: Path, shape: list[int], suffix: str) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    published.write_idx(tmp_path / f"array{suffix}", array)
    found = read_idx(tmp_path / f"array{suffix}")
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable  # torch wants that


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not an idx file"),
        (b"\x00\x00\x08", "is not an idx file"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01\x07", "is not an idx file"),  # floating-point numbers
        (b"\x00\x00\x08\x02\x00\x00\x00\x01", "is not an idx file"),  # half a header
        (b"\x00\x00\x08\x01\x00\x00\x00\x03\x01\x02", "has 2 bytes instead of 3"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x01\x01\x02", "has 2 bytes instead of 1"),
    ],
)
def test_damaged_idx_files(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "array").write_bytes(content)
    with pytest.raises(UserError, match=rf"array {says}.* download the file again"):
        read_idx(tmp_path / "array")


def test_gzip_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "array.gz").write_bytes(b"not gzip")
    with pytest.raises(UserError, match=r"array.gz cannot be read"):
        read_idx(tmp_path / "array.gz")
    with pytest.raises(UserError, match=r"other.gz cannot be read"):
        read_idx(tmp_path / "other.gz")


def test_mnist_like_splits(tmp_path: Path) -> None:
    published.write_fashion(tmp_path, train=7, test=3)
    both = read_mnist_like(tmp_path)
    for split, samples, labels in (
        ("train", both.samples, both.labels),
        ("test", both.test_samples, both.test_labels),
    ):
        images, numbers = read_idx_folder(tmp_path, split)
        assert samples is not None
        assert labels is not None
        np.testing.assert_array_equal(samples, images)
        np.testing.assert_array_equal(labels, numbers)
        assert (images.shape[1:], images.dtype, numbers.dtype) == ((1, 28, 28), np.uint8, np.int64)


def test_mnist_like_files_that_do_not_belong_together(tmp_path: Path) -> None:
    published.write_fashion(tmp_path, train=7, test=3)
    published.write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.zeros(6))
    with pytest.raises(UserError, match=r"the train files in .* do not match"):
        read_mnist_like(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UserError, match=r"does not contain train-labels-idx1-ubyte.gz"):
        read_mnist_like(tmp_path)


def test_cifar10(tmp_path: Path) -> None:
    images = published.write_cifar10(tmp_path)
    found = read_cifar10(tmp_path)
    np.testing.assert_array_equal(found.samples, images)
    assert found.labels is not None
    assert found.labels.tolist() == [*range(10)] * 5
    assert found.class_names is not None
    assert found.class_names[:3] == ("airplane", "automobile", "bird")


def rewrite(path: Path, **changes: Any) -> None:
    """Change some values of a published pickle; None drops one."""
    content = {key.decode(): value for key, value in pickle.loads(path.read_bytes(), encoding="bytes").items()}
    content |= changes
    path.write_bytes(published.python2_pickle({key: value for key, value in content.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": np.zeros((10, 3071), np.uint8)}, "has no array `data` of N x 3072 bytes"),
        ({"data": np.zeros((10, 3072), np.float32)}, "is damaged .*an array that does not hold bytes"),
        ({"labels": [1, [2]] * 5}, "has 10 images and 0 labels"),
        ({"labels": 10**30}, "has 10 images and 0 labels"),
        ({"data": None}, "has no array `data`"),
        ({"labels": None}, "has 10 images and 0 labels"),
        ({"labels": list(range(9))}, "has 10 images and 9 labels"),
        ({"labels": [0.5] * 10}, "has 10 images and 10 labels"),
    ],
)
def test_cifar_files_without_what_they_need(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    rewrite(tmp_path / "data_batch_3", **changes)
    with pytest.raises(UserError, match=rf"data_batch_3 {says}.* download the file again"):
        read_cifar10(tmp_path)


@pytest.mark.parametrize("label", [-1, 10])
def test_cifar_labels_out_of_range(label: int, tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    rewrite(tmp_path / "test_batch", labels=[label] * 10)
    with pytest.raises(UserError, match=r"labels in .*test_batch are not all between 0 and 9"):
        read_cifar10(tmp_path)


def test_cifar_names_must_be_as_many_as_the_classes(tmp_path: Path) -> None:
    published.write_cifar10(tmp_path)
    rewrite(tmp_path / "batches.meta", label_names=["cat", "dog"])
    with pytest.raises(UserError, match=r"batches.meta does not have 10 names under label_names"):
        read_cifar10(tmp_path)


def test_cifar100_puts_every_class_into_one_superclass(tmp_path: Path) -> None:
    groups = published.write_cifar100(tmp_path)
    found = read_cifar100(tmp_path)
    assert found.groups is not None
    np.testing.assert_array_equal(found.groups, groups)
    rewrite(tmp_path / "train", coarse_labels=[*(groups[np.arange(199) % 100].tolist()), 0])
    with pytest.raises(UserError, match="classes without a unique superclass"):
        read_cifar100(tmp_path)


def test_svhn(tmp_path: Path) -> None:
    images = published.write_svhn(tmp_path, train=13, test=4)
    found = read_svhn(tmp_path)
    np.testing.assert_array_equal(found.samples, images)
    assert found.labels is not None
    assert found.labels.tolist() == [k % 10 for k in range(13)]  # the files call the digit 0 "10"
    assert found.test_samples is not None
    assert found.test_samples.shape == (4, 3, 32, 32)
    assert found.samples.flags.c_contiguous


GOOD = {"X": np.zeros((32, 32, 3, 5), np.uint8), "y": np.arange(1, 6)[:, None]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"X": np.zeros((32, 32, 5), np.uint8)}, r"X in .* got uint8 of shape \(32, 32, 5\)"),
        ({"X": np.zeros((32, 32, 3, 5))}, r"X in .* got float64"),
        ({"y": np.arange(1, 5)[:, None]}, "has 5 images and 4 labels"),
        ({"y": np.arange(5)[:, None]}, "label 1 in .* is 0 instead of 1 to 10"),
        ({"y": np.arange(7, 12)[:, None]}, "label 5 in .* is 11 instead of 1 to 10"),
    ],
)
def test_damaged_svhn(changes: dict[str, np.ndarray], says: str, tmp_path: Path) -> None:
    published.write_svhn(tmp_path)
    savemat(tmp_path / "train_32x32.mat", GOOD | changes)
    with pytest.raises(UserError, match=says):
        read_svhn(tmp_path)


def test_digits_use_the_whole_range_of_bytes() -> None:
    found = read_digits(Path("nowhere"))
    assert found.samples.shape == (1797, 1, 8, 8)
    assert (found.samples.min(), found.samples.max(), found.samples.dtype) == (0, 255, np.uint8)
    assert found.test_samples is None
    assert found.labels is not None
    assert set(found.labels.tolist()) == set(range(10))


def test_the_part_of_fashion_mnist_in_the_package() -> None:
    found = read_fashion_mini(inside_package(Path("nowhere")))
    assert found.test_samples is not None
    assert found.labels is not None
    assert found.test_labels is not None
    assert (found.samples.shape, found.test_samples.shape) == ((10_000, 1, 28, 28), (5_000, 1, 28, 28))
    assert np.bincount(found.labels).tolist() == [1000] * 10
    assert np.bincount(found.test_labels).tolist() == [500] * 10
    assert found.labels.dtype == np.int64
