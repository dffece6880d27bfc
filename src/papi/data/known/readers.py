"""Readers of the files in which benchmarks are published: images become `(N, C, H, W) uint8`."""

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

_IDX_BYTES = 2**30  # the largest of these files has a twentieth of that
_IDX_SPLITS = {"train": "train", "test": "t10k"}


class Arrays(NamedTuple):
    """What the files of a known dataset hold."""

    samples: np.ndarray  # images (N, C, H, W) uint8, or features (N, d) float32
    labels: np.ndarray | None
    test_samples: np.ndarray | None = None
    test_labels: np.ndarray | None = None
    candidates: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    groups: np.ndarray | None = None


def read_idx(path: Path) -> np.ndarray:
    """The array in one idx file (the format of MNIST), gzipped or not. Only unsigned bytes occur in these files."""
    try:
        with opened(path, _IDX_BYTES) as stream:
            # One byte more than the limit tells that there is more.
            content = (gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream).read(_IDX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {reason(error)}. Fetch the file again.") from error
    if len(content) > _IDX_BYTES:
        raise UserError(f"{path} unpacks to more than {_IDX_BYTES:,} bytes. Fetch the file again.")
    if len(content) < 4 or content[:3] != b"\x00\x00\x08" or len(content) < 4 + 4 * content[3]:
        raise UserError(f"{path} is not an idx file of unsigned bytes. Fetch the file again.")
    header = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:header])
    if len(content) - header != math.prod(shape):
        raise UserError(
            f"{path} announces {math.prod(shape)} bytes and holds {len(content) - header}. Fetch the file again."
        )
    # A copy: torch wants memory it may write to.
    values: np.ndarray = np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()
    return values


def read_idx_folder(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """One split ("train" or "test") of an MNIST-like dataset."""
    prefix = _IDX_SPLITS[split]
    images, labels = (read_idx(_either(folder, f"{prefix}-{kind}-ubyte")) for kind in ("images-idx3", "labels-idx1"))
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise UserError(f"the {prefix} files of {folder} do not belong together: {images.shape}, {labels.shape}.")
    return images[:, None], labels.astype(np.int64)


def _either(folder: Path, name: str) -> Path:
    """The file as published (gzipped) or already unpacked."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.exists():
            return path
    raise UserError(f"{folder} has no {name}.gz. Put the published file there.")


def read_mnist_like(folder: Path) -> Arrays:
    """Both splits of an MNIST-like dataset."""
    return Arrays(*read_idx_folder(folder, "train"), *read_idx_folder(folder, "test"))


def read_cifar10(folder: Path) -> Arrays:
    """The five training files and the test file of CIFAR-10 for Python."""
    parts = [_cifar_part(folder / f"data_batch_{number}", "labels", 10) for number in range(1, 6)]
    images, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    names = _cifar_names(folder / "batches.meta", "label_names", 10)
    return Arrays(images, labels, *_cifar_part(folder / "test_batch", "labels", 10), class_names=names)


def read_cifar100(folder: Path) -> Arrays:
    """CIFAR-100 for Python; the group of a class is its superclass."""
    images, labels = _cifar_part(folder / "train", "fine_labels", 100)
    _, coarse = _cifar_part(folder / "train", "coarse_labels", 20)
    test = _cifar_part(folder / "test", "fine_labels", 100)
    groups = np.full(100, -1)
    groups[labels] = coarse
    if (groups < 0).any() or (groups[labels] != coarse).any():
        raise UserError(f"{folder / 'train'} does not put every class into one superclass. Fetch the file again.")
    return Arrays(
        images, labels, *test, class_names=_cifar_names(folder / "meta", "fine_label_names", 100), groups=groups
    )


def _cifar_part(path: Path, labels_key: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    content = read_pickle(path)
    images, labels = content.get("data"), _numbers(content.get(labels_key, []))
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != 3072 or images.dtype != np.uint8:
        raise UserError(f"{path} has no `data` of N x 3072 bytes. Fetch the file again.")
    if labels.dtype.kind not in "iu" or len(labels) != len(images):
        raise UserError(f"{path} has {len(images)} images and {len(labels)} {labels_key}. Fetch the file again.")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise UserError(f"{labels_key} of {path} are not all in 0 to {classes - 1}. Fetch the file again.")
    return images.reshape(-1, 3, 32, 32), labels.astype(np.int64)


def _numbers(values: object) -> np.ndarray:
    """A list as an array `(N,)`; an empty array if it is anything else."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return np.empty(0)
    return array if array.ndim == 1 else np.empty(0)


def _cifar_names(path: Path, key: str, count: int) -> tuple[str, ...]:
    names = read_pickle(path).get(key, [])
    if not isinstance(names, list) or len(names) != count:
        raise UserError(f"{path} has no {count} names under {key}. Fetch the file again.")
    return tuple(as_text(name) for name in names)


def read_svhn(folder: Path) -> Arrays:
    """The cropped digits of SVHN, without its extra part."""
    return Arrays(*_svhn_part(folder / "train_32x32.mat"), *_svhn_part(folder / "test_32x32.mat"))


def _svhn_part(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images `(N, 3, 32, 32) uint8` and digits `(N,)`. The files call the digit 0 "10"."""
    content = read_mat(path, ("X", "y"))
    images, labels = content["X"], content["y"].ravel()
    if images.ndim != 4 or images.shape[:3] != (32, 32, 3) or images.dtype != np.uint8:
        raise UserError(f"X of {path} is {images.dtype} of shape {images.shape}: (32, 32, 3, N) of uint8 is needed.")
    if labels.dtype.kind not in "iuf" or len(labels) != images.shape[3]:
        raise UserError(f"{path} has {images.shape[3]} images and {len(labels)} labels. Fetch the file again.")
    wrong = np.flatnonzero((labels < 1) | (labels > 10))
    if len(wrong):
        raise UserError(
            f"label {wrong[0] + 1} of {path} is {labels[wrong[0]]}: the digits are 1 to 10. Fetch it again."
        )
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels.astype(np.int64) % 10


def read_digits(_: Path) -> Arrays:
    """The digits that come with scikit-learn, 8 x 8 pixels with values up to 16. They have no test images."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images * (255 / 16)).round().astype(np.uint8)
    return Arrays(images[:, None], digits.target.astype(np.int64))


def read_fashion_mini(folder: Path) -> Arrays:
    """The part of Fashion-MNIST that comes with the package."""
    with np.load(folder / "fashion_mini.npz", allow_pickle=False) as file:
        train, test = ((file[f"{split}_images"][:, None], file[f"{split}_labels"]) for split in ("train", "test"))
    return Arrays(train[0], train[1].astype(np.int64), test[0], test[1].astype(np.int64))
