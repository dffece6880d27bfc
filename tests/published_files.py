"""Small files in the formats in which datasets are published, for tests that need no download."""

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    content = header + array.astype(np.uint8).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_fashion(folder: Path, train: int = 20, test: int = 10, suffix: str = ".gz") -> None:
    random = np.random.default_rng(0)
    for prefix, count in (("train", train), ("t10k", test)):
        write_idx(folder / f"{prefix}-images-idx3-ubyte{suffix}", random.integers(0, 256, (count, 28, 28)))
        write_idx(folder / f"{prefix}-labels-idx1-ubyte{suffix}", np.arange(count) % 10)


def python2_pickle(content: dict[str, Any]) -> bytes:
    """A pickle of protocol 2 whose texts are Python 2's, as CIFAR's files have them."""

    def old(value: Any) -> Any:
        if isinstance(value, str):
            return value.encode()
        return [old(each) for each in value] if isinstance(value, list) else value

    return pickle.dumps({old(key): old(value) for key, value in content.items()}, protocol=2)


def write_cifar10(folder: Path, per_file: int = 10) -> np.ndarray:
    """All files of CIFAR-10 with a few images; returns the training images as they must be read."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    images = []
    for name in [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]:
        data = random.integers(0, 256, (per_file, 3072), np.uint8)
        images.append(data.reshape(-1, 3, 32, 32))
        content = {
            "batch_label": name,
            "labels": list(range(per_file)),
            "data": data,
            "filenames": ["a.png"] * per_file,
        }
        (folder / name).write_bytes(python2_pickle(content))
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (folder / "batches.meta").write_bytes(python2_pickle({"label_names": names}))
    return np.concatenate(images[:5])


def write_cifar100(folder: Path, images: int = 200) -> np.ndarray:
    """CIFAR-100 with classes 5k to 5k+4 in superclass k; returns the superclass of each class."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    groups = np.arange(100) // 5
    for name in ("train", "test"):
        fine = np.arange(images) % 100
        content = {
            "data": random.integers(0, 256, (images, 3072), np.uint8),
            "fine_labels": fine.tolist(),
            "coarse_labels": groups[fine].tolist(),
        }
        (folder / name).write_bytes(python2_pickle(content))
    meta = {
        "fine_label_names": [f"fine{k}" for k in range(100)],
        "coarse_label_names": [f"coarse{k}" for k in range(20)],
    }
    (folder / "meta").write_bytes(python2_pickle(meta))
    return groups


def write_svhn(folder: Path, train: int = 20, test: int = 10) -> np.ndarray:
    """Both files of SVHN; returns the training images as they must be read."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    images = random.integers(0, 256, (train + test, 3, 32, 32), np.uint8)
    for name, part in (("train", images[:train]), ("test", images[train:])):
        labels = np.arange(len(part)) % 10
        published = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
        savemat(folder / f"{name}_32x32.mat", {"X": part.transpose(2, 3, 1, 0), "y": published})
    return images[:train]


def write_partial_mat(path: Path, samples: int = 60, columns: int = 5, classes: int = 4, **changes: Any) -> None:
    """A feature table in the layout of Southeast University; `changes` replace variables, None drops one."""
    from scipy.sparse import csc_matrix

    random = np.random.default_rng(0)
    labels = np.arange(samples) % classes
    target = np.eye(classes)[:, labels]
    partial = np.maximum(target, random.random((classes, samples)) < 0.3)
    content: dict[str, Any] = {
        "data": random.normal(size=(samples, columns)) + 3 * labels[:, None],
        "target": csc_matrix(target),
        "partial_target": csc_matrix(partial),
    }
    content |= changes
    savemat(path, {name: value for name, value in content.items() if value is not None})


def write_images(folder: Path, names: list[str], side: int = 16, seed: int = 0, grey: bool = False) -> None:
    """Small noisy images under these names."""
    random = np.random.default_rng(seed)
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shape = (side, side) if grey else (side, side, 3)
        Image.fromarray(random.integers(0, 256, shape, np.uint8)).save(path)
