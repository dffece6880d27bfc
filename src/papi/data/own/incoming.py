"""Inputs of a trained model: image files, folders, arrays and tables, read part by part."""

import csv
import io
import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from lzma import LZMAError
from pathlib import Path
from typing import IO

import numpy as np

from papi.data.dataset import Report
from papi.data.images.arrays import as_image_array
from papi.data.images.decode import ImageError, Target, decode, decode_square
from papi.data.own.annotations import RESERVED
from papi.data.own.folders import image_files, leads_out, misnamed, text_of
from papi.errors import UserError
from papi.files.reading import opened, reason
from papi.networks.preparation import Preparation

ARRAYS, TABLES = (".npy", ".npz"), (".csv",)
# What damaged archives raise. A member that is encrypted, or packed in a way that is not known, is a RuntimeError.
_UNREADABLE = (
    OSError, ValueError, EOFError, RuntimeError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error, LZMAError,
)  # fmt: skip

Reader = Callable[[Path, tuple[int, ...], int], Iterator[np.ndarray]]  # the file, a sample's shape, rows at a time


@dataclass(frozen=True)
class Part:
    """Some samples in the shape a model takes, and where they come from."""

    samples: np.ndarray  # (B, C, H, W) uint8 or (B, d) float32
    files: Sequence[str]  # of each sample
    rows: Sequence[int] | None  # within an array or table, counted from 0; None for image files
    problems: Sequence[str] = ()  # sentences about files that could not be read


def count_samples(paths: Sequence[Path], shape: tuple[int, ...]) -> int | None:
    """The number of samples, for a progress bar; None if only reading can tell."""
    total = 0
    for path in paths:
        if path.is_dir():
            total += sum(1 for _ in image_files(path))
        elif path.suffix.lower() in ARRAYS:
            try:
                with _opened(path, shape) as stream:
                    total += _header(stream, path)[0][0]
            except _UNREADABLE:
                continue
        elif path.suffix.lower() in TABLES:
            return None
        else:
            total += 1
    return total


def read_parts(
    paths: Sequence[Path],
    shape: tuple[int, ...],
    size: int,
    report: Report,
    preparation: Preparation | None = None,
) -> Iterator[Callable[[], Part]]:
    """All samples in order, at most `size` at a time, for a model that takes samples of `shape`.

    A part of image files is decoded when it is called, by any thread; with a `preparation`, as photos for an encoder.
    What cannot be read is reported, there or here, and left out. Neighbouring image files share a part.
    """
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist: give images, folders of images, or arrays.")
    pending: list[Path] = []
    for path in paths:
        if text_of(path) is None:
            report(misnamed(path))
            continue
        reader = _reader(path)
        if reader is None:
            files = _image_files(path, report)
            while batch := list(islice(files, size - len(pending))):
                pending += batch
                if len(pending) == size:
                    yield partial(_decoded, pending, shape, preparation)
                    pending = []
            continue
        if pending:
            yield partial(_decoded, pending, shape, preparation)
            pending = []
        for part in _rows(path, reader, shape, size, report):
            yield partial(_itself, part)
    if pending:
        yield partial(_decoded, pending, shape, preparation)


def _itself(part: Part) -> Part:
    return part


def _image_files(path: Path, report: Report) -> Iterator[Path]:
    """The images below a folder, or the one at a path; what cannot be an image is reported."""
    folder = path if path.is_dir() else None
    for file in (path,) if folder is None else image_files(folder):
        if text_of(file) is None:
            report(misnamed(file))
        elif folder is not None and file.is_symlink() and leads_out(file, folder):
            report(f"{file} is a link that leads out of {folder}: name the image itself.")
        elif not os.path.isfile(file) and os.path.exists(file):
            report(f"{file} is no regular file.")  # to open a named pipe is to wait, perhaps for ever
        else:
            yield file


def _rows(path: Path, reader: Reader, shape: tuple[int, ...], size: int, report: Report) -> Iterator[Part]:
    """The samples of an array or a table, as far as it can be read."""
    row = 0
    try:
        for array in reader(path, shape, size):
            samples, kept = _fitting(array, range(row, row + len(array)), shape, path, report)
            row += len(array)
            yield Part(samples, [text_of(path) or ""] * len(kept), kept)
    except _UNREADABLE as error:
        report(str(error) if isinstance(error, UserError) else f"{path} cannot be read ({reason(error)}).")


def _reader(path: Path) -> Reader | None:
    """How to read an array or a table; None for images and folders."""
    if path.is_dir():
        return None
    return {".npy": _read_array, ".npz": _read_array, ".csv": _read_csv}.get(path.suffix.lower())


def _decoded(files: Sequence[Path], shape: tuple[int, ...], preparation: Preparation | None) -> Part:
    """Image files as one part, brought to the shape in the same way as in training."""
    if len(shape) == 1 and preparation is None:
        wrong = f"is no table, and this model takes {shape[0]} features: give .npy, .npz or .csv files."
        return Part(np.empty((0, *shape), np.float32), (), None, [f"{file} {wrong}" for file in files])
    images, names, problems = [], [], []
    for file in files:
        try:
            if preparation is None:
                channels, height, width = shape
                images.append(decode(file, Target(height, width, 3 if channels == 3 else 1)))
            else:
                images.append(decode_square(file, preparation))
            names.append(text_of(file) or "")
        except ImageError as error:
            problems.append(f"{file} {error}.")
    samples = np.stack(images) if images else np.empty((0, *(preparation.shape if preparation else shape)), np.uint8)
    return Part(samples, names, None, problems)


def _read_array(path: Path, shape: tuple[int, ...], size: int) -> Iterator[np.ndarray]:
    """Rows of an array file, read in order. A mapped file would be simpler, but its pages count as our memory."""
    with _opened(path, shape) as stream:
        whole, dtype = _header(stream, path)
        if math.prod(whole[1:]) != math.prod(shape):  # before so much is read as a header can promise
            raise UserError(f"the samples of {path} are {whole[1:]}: this model takes {shape}.")
        row_bytes = dtype.itemsize * math.prod(shape)
        for start in range(0, whole[0], size):
            rows = min(size, whole[0] - start)
            content = bytearray(stream.read(rows * row_bytes))  # torch wants memory it may write to
            if len(content) < rows * row_bytes:
                raise UserError(f"{path} ends after {start + len(content) // row_bytes} of {whole[0]} samples.")
            yield np.frombuffer(content, dtype).reshape(rows, *whole[1:])


@contextmanager
def _opened(path: Path, shape: tuple[int, ...]) -> Iterator[IO[bytes]]:
    """An open array file; in an archive, `images` or `features` as the model takes them, or its only array."""
    if path.suffix.lower() == ".npy":
        with opened(path, sys.maxsize) as stream:
            yield stream
        return
    wanted = "features" if len(shape) == 1 else "images"
    with opened(path, sys.maxsize) as file, zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if wanted not in names and len(names) != 1:
            held = f"the arrays {', '.join(names[:10])}" if names else "no arrays"
            raise UserError(f"{path} has {held}: name the one to use {wanted}.")
        with archive.open(f"{wanted if wanted in names else names[0]}.npy") as stream:
            yield stream


def _header(stream: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of an array, which must be in row order."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = read(stream)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # whatever the text of a damaged header does to NumPy's parser
        raise UserError(f"{path} is not an array file of NumPy ({reason(error)}).") from error
    if dtype.kind not in "biuf" and not dtype.hasobject:
        raise UserError(f"{path} holds {dtype}: numbers are needed.")
    if dtype.hasobject or columns_first or not shape:
        what = "Python objects" if dtype.hasobject else "columns one after another" if columns_first else "one value"
        raise UserError(f"{path} holds {what}: save np.ascontiguousarray(samples) with one row for each sample.")
    return shape, dtype


def _read_csv(path: Path, shape: tuple[int, ...], size: int) -> Iterator[np.ndarray]:
    """Columns without another meaning are features, as in training; a cell that is not a number becomes NaN."""
    if len(shape) != 1:
        raise UserError(f"{path} is a table of features, and this model takes images of {shape}.")
    with opened(path, sys.maxsize) as content, io.TextIOWrapper(content, "utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = next(reader, [])
            used = [k for k, name in enumerate(header) if name.strip() not in RESERVED]
            if len(used) != shape[0]:
                raise UserError(f"{path} has {len(used)} columns of features: this model takes {shape[0]}.")
            while rows := list(islice((row for row in reader if row), size)):
                yield np.array([[_number(row, k) for k in used] for row in rows])
        except (csv.Error, UnicodeDecodeError) as error:
            raise UserError(f"{path}, line {reader.line_num + 1} is not csv in UTF-8 ({error}).") from error


def _number(row: list[str], column: int) -> float:
    try:
        return float(row[column])
    except (ValueError, IndexError):
        return np.nan


def _fitting(
    array: np.ndarray, rows: range, shape: tuple[int, ...], path: Path, report: Report
) -> tuple[np.ndarray, Sequence[int]]:
    """The samples as the model takes them, and their rows, without rows that have non-finite features."""
    if len(shape) == 3:
        samples = as_image_array(array, f"the images of {path}")
    elif array.ndim == 2 and array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # what is too large becomes infinite and is left out
            samples = array.astype(np.float32, copy=False)
    else:
        raise UserError(f"{path} is {array.dtype} of shape (N, …) {array.shape[1:]}: this model takes (N, {shape[0]}).")
    if samples.shape[1:] != shape:
        raise UserError(f"the samples of {path} are {samples.shape[1:]}: this model takes {shape}.")
    if len(shape) == 3:
        return np.ascontiguousarray(samples), rows
    finite = np.isfinite(samples).all(1)
    for row in np.flatnonzero(~finite):
        report(f"{path}, row {rows[row]} has a feature that is not a finite number.")
    return samples[finite], [rows[k] for k in np.flatnonzero(finite)]
