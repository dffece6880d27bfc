"""Readers of published file formats and of people's own arrays: images become `(N, C, H, W) uint8`."""

import gzip
import struct
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, ViewRecipe
from papi.errors import UserError

_IDX_SPLITS = {"train": "train", "test": "t10k"}


def read_idx(path: Path) -> np.ndarray:
    """The array in one idx file (the format of MNIST), gzipped or not. Only unsigned bytes occur in these files."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise UserError(f"{path} cannot be read: {error}. Fetch the file again.") from error
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise UserError(f"{path} is not an idx file of unsigned bytes. Fetch the file again.")
    header = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:header])
    if len(content) - header != int(np.prod(shape)):
        raise UserError(
            f"{path} announces {int(np.prod(shape))} bytes and holds {len(content) - header}. Fetch the file again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def read_idx_folder(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """One split ("train" or "test") of an MNIST-like dataset."""
    prefix = _IDX_SPLITS[split]
    images, labels = (read_idx(_either(folder, f"{prefix}-{kind}-ubyte")) for kind in ("images-idx3", "labels-idx1"))
    return images[:, None], labels.astype(np.int64)


def _either(folder: Path, name: str) -> Path:
    """The file as published (gzipped) or already unpacked."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.exists():
            return path
    raise UserError(f"{folder} has no {name}.gz. Put the published file there.")


def read_npz(path: Path) -> Dataset:
    """People's own arrays: `images` and `candidates` (0/1 for each class), `labels` or both; optional `test_images`
    with `test_labels`, and `class_names`. Images are `uint8`: `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`."""
    if path.suffix != ".npz":
        raise UserError(f"{path} is no .npz file. Save your arrays with numpy.savez(file, images=…, candidates=…).")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}. Write it with numpy.savez, without objects.") from error
    if "images" not in arrays or not {"candidates", "labels"} & arrays.keys():
        raise UserError(f"{path} holds {', '.join(arrays) or 'nothing'}: it needs images and candidates (or labels).")
    images = as_image_array(arrays["images"], f"images of {path}")
    labels = arrays.get("labels")
    candidates = arrays.get("candidates")
    if candidates is not None and candidates.ndim == 2:
        classes = candidates.shape[1]
    else:
        classes = int(arrays["labels"].max()) + 1
    names = arrays.get("class_names", np.array([str(k) for k in range(classes)]))
    test_images = arrays.get("test_images")
    test_labels = arrays.get("test_labels")
    if candidates is not None:
        candidates = _checked_candidates(candidates, len(images), len(names), path)
    pixels = images.astype(np.float64).transpose(1, 0, 2, 3).reshape(images.shape[1], -1) / 255
    return Dataset(
        name=path.stem,
        class_names=tuple(str(name) for name in names),
        images=images,
        mean=tuple(float(m) for m in pixels.mean(1)),
        std=tuple(float(max(s, 1e-3)) for s in pixels.std(1)),
        recipe=ViewRecipe(crop_padding=max(2, images.shape[-1] // 8), cutout=images.shape[-1] // 2),
        labels=None if labels is None else _checked_labels(labels, len(images), len(names), path),
        candidates=candidates,
        test_images=None if test_images is None else as_image_array(test_images, f"test_images of {path}"),
        test_labels=None
        if test_images is None or test_labels is None
        else _checked_labels(test_labels, len(test_images), len(names), path),
    )


def as_image_array(images: np.ndarray, what: str) -> np.ndarray:
    """`(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` of `uint8` to `(N, C, H, W)`; C is 1 or 3."""
    if images.dtype != np.uint8:
        raise UserError(f"{what} have type {images.dtype}: give uint8 pixel values from 0 to 255.")
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[1] in (1, 3):
        return images
    if images.ndim == 4 and images.shape[3] in (1, 3):
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    raise UserError(f"{what} have shape {images.shape}: give (N, H, W), (N, H, W, 3) or (N, 3, H, W).")


def _checked_candidates(candidates: np.ndarray, count: int, classes: int, path: Path) -> np.ndarray:
    if candidates.shape != (count, classes):
        raise UserError(f"candidates of {path} have shape {candidates.shape}: {(count, classes)} is needed.")
    empty = np.flatnonzero(~candidates.astype(bool).any(1))
    if len(empty):
        raise UserError(f"row {empty[0]} of the candidates of {path} is empty: every image needs a candidate.")
    return candidates.astype(bool)


def _checked_labels(labels: np.ndarray, count: int, classes: int, path: Path) -> np.ndarray:
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise UserError(f"labels of {path} are {labels.dtype} of shape {labels.shape}: {count} integers are needed.")
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        row = wrong[0]
        raise UserError(f"row {row} of the labels of {path} is {labels[row]}: the classes are 0 to {classes - 1}.")
    return labels.astype(np.int64)
