"""Readers for the published files of benchmarks: images become `(N, C, H, W) uint8`."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from papi.data.known.pickles import as_text, read_pickle
from papi.data.own.matfiles import read_mat
from papi.errors import UserError
from papi.files.reading import opened, reason

_IDX_BYTES = 2**30  # 20 times the size of the largest of these files
_IDX_SPLITS = {"train": "train", "test": "t10k"}


class Arrays(NamedTuple):
    """The contents of the files of a known dataset."""

    samples: np.ndarray  # images (N, C, H, W) uint8, or features (N, d) float32
    labels: np.ndarray | None
    test_samples: np.ndarray | None = None
    test_labels: np.ndarray | None = None
    candidates: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    groups: np.ndarray | None = None


def read_idx(path: Path) -> np.ndarray:
    """Read an idx file of unsigned bytes (the format of MNIST), gzipped or not."""
    try:
        with opened(path, _IDX_BYTES) as stream:
            # Read one byte more than the limit to detect larger files.
            content = (gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream).read(_IDX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): download the file again.") from error
    if len(content) > _IDX_BYTES:
        raise UserError(f"{path} unpacks to more than {_IDX_BYTES:,} bytes: download the file again.")
    if len(content) < 4 or content[:3] != b"\x00\x00\x08" or len(content) < 4 + 4 * content[3]:
        raise UserError(f"{path} is not an idx file of unsigned bytes: download the file again.")
    header = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:header])
    if len(content) - header != math.prod(shape):
        raise UserError(
            f"{path} has {len(content) - header} bytes instead of {math.prod(shape)}: download the file again."
        )
    # Copy: torch needs writable memory.
    values: np.ndarray = np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()
    return values


def read_idx_folder(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Read one split ("train" or "test") of an MNIST-like dataset."""
    prefix = _IDX_SPLITS[split]
    images, labels = (read_idx(_either(folder, f"{prefix}-{kind}-ubyte")) for kind in ("images-idx3", "labels-idx1"))
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise UserError(
            f"the {prefix} files in {folder} do not match, with images {images.shape} and labels {labels.shape}: "
            "download them again."
        )
    return images[:, None], labels.astype(np.int64)


def _either(folder: Path, name: str) -> Path:
    """Return the file as published (gzipped) or unpacked."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.exists():
            return path
    raise UserError(f"{folder} does not contain {name}.gz: add the published file.")


def read_mnist_like(folder: Path) -> Arrays:
    """Read both splits of an MNIST-like dataset."""
    return Arrays(*read_idx_folder(folder, "train"), *read_idx_folder(folder, "test"))


def read_cifar10(folder: Path) -> Arrays:
    """Read the five training files and the test file of CIFAR-10 for Python."""
    parts = [_cifar_part(folder / f"data_batch_{number}", "labels", 10) for number in range(1, 6)]
    images, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    names = _cifar_names(folder / "batches.meta", "label_names", 10)
    return Arrays(images, labels, *_cifar_part(folder / "test_batch", "labels", 10), class_names=names)


def read_cifar100(folder: Path) -> Arrays:
    """Read CIFAR-100 for Python; the group of a class is its superclass."""
    images, labels = _cifar_part(folder / "train", "fine_labels", 100)
    _, coarse = _cifar_part(folder / "train", "coarse_labels", 20)
    test = _cifar_part(folder / "test", "fine_labels", 100)
    groups = np.full(100, -1)
    groups[labels] = coarse
    if (groups < 0).any() or (groups[labels] != coarse).any():
        raise UserError(f"{folder / 'train'} has classes without a unique superclass: download the file again.")
    return Arrays(
        images, labels, *test, class_names=_cifar_names(folder / "meta", "fine_label_names", 100), groups=groups
    )


def _cifar_part(path: Path, labels_key: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    content = read_pickle(path)
    images, labels = content.get("data"), _numbers(content.get(labels_key, []))
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != 3072 or images.dtype != np.uint8:
        raise UserError(f"{path} has no array `data` of N x 3072 bytes: download the file again.")
    if labels.dtype.kind not in "iu" or len(labels) != len(images):
        raise UserError(f"{path} has {len(images)} images and {len(labels)} {labels_key}: download the file again.")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise UserError(f"{labels_key} in {path} are not all between 0 and {classes - 1}: download the file again.")
    return images.reshape(-1, 3, 32, 32), labels.astype(np.int64)


def _numbers(values: object) -> np.ndarray:
    """Convert a list to an array `(N,)`; anything else becomes an empty array."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return np.empty(0)
    return array if array.ndim == 1 else np.empty(0)


def _cifar_names(path: Path, key: str, count: int) -> tuple[str, ...]:
    names = read_pickle(path).get(key, [])
    if not isinstance(names, list) or len(names) != count:
        raise UserError(f"{path} does not have {count} names under {key}: download the file again.")
    return tuple(as_text(name) for name in names)


def read_svhn(folder: Path) -> Arrays:
    """Read the cropped digits of SVHN, without the extra part."""
    return Arrays(*_svhn_part(folder / "train_32x32.mat"), *_svhn_part(folder / "test_32x32.mat"))


def _svhn_part(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read images `(N, 3, 32, 32) uint8` and digits `(N,)`. In the files, the label of the digit 0 is 10."""
    content = read_mat(path, ("X", "y"))
    images, labels = content["X"], content["y"].ravel()
    if images.ndim != 4 or images.shape[:3] != (32, 32, 3) or images.dtype != np.uint8:
        raise UserError(
            f"X in {path} must be uint8 of shape (32, 32, 3, N); got {images.dtype} of shape {images.shape}: download "
            "the file again."
        )
    if labels.dtype.kind not in "iuf" or len(labels) != images.shape[3]:
        raise UserError(f"{path} has {images.shape[3]} images and {len(labels)} labels: download the file again.")
    wrong = np.flatnonzero((labels < 1) | (labels > 10))
    if len(wrong):
        raise UserError(
            f"label {wrong[0] + 1} in {path} is {labels[wrong[0]]} instead of 1 to 10: download the file again."
        )
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels.astype(np.int64) % 10


def read_digits(_: Path) -> Arrays:
    """Read the digits of scikit-learn, 8 x 8 pixels with values up to 16. There are no test images."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)
    return Arrays(images[:, None], digits.target.astype(np.int64))


def read_fashion_mini(folder: Path) -> Arrays:
    """Read the subset of Fashion-MNIST that is part of the package."""
    with np.load(folder / "fashion_mini.npz", allow_pickle=False) as file:
        train, test = ((file[f"{split}_images"][:, None], file[f"{split}_labels"]) for split in ("train", "test"))
    return Arrays(train[0], train[1].astype(np.int64), test[0], test[1].astype(np.int64))
