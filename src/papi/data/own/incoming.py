"""Reads the inputs of a trained model in batches: image files, folders, arrays and tables."""

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
# Exceptions of damaged archives. Encrypted members and unknown compression methods raise RuntimeError.
_UNREADABLE = (
    OSError, ValueError, EOFError, RuntimeError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error, LZMAError,
)  # fmt: skip

Reader = Callable[[Path, tuple[int, ...], int], Iterator[np.ndarray]]  # the file, a sample's shape, rows per batch


@dataclass(frozen=True)
class Part:
    """A batch of samples in the model's input shape, and their files and rows."""

    samples: np.ndarray  # (B, C, H, W) uint8 or (B, d) float32
    files: Sequence[str]  # of each sample
    rows: Sequence[int] | None  # within an array or table, counted from 0; None for image files
    problems: Sequence[str] = ()  # messages about files that could not be read


def count_samples(paths: Sequence[Path], shape: tuple[int, ...]) -> int | None:
    """Return the number of samples for a progress bar; None if it is unknown before reading."""
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
    """Yield all samples in order, in batches of at most `size`, for a model with inputs of this `shape`.

    A batch of image files is decoded when it is called, in any thread; with a `preparation`, as photos for an encoder.
    Inputs that cannot be read are reported and skipped. Consecutive image files share a batch.
    """
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist: specify images, folders of images, or arrays.")
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
    """Yield the images below a folder, or the image at a path; report paths that cannot be images."""
    folder = path if path.is_dir() else None
    for file in (path,) if folder is None else image_files(folder):
        if text_of(file) is None:
            report(misnamed(file))
        elif folder is not None and file.is_symlink() and leads_out(file, folder):
            report(f"{file} is a link that points outside {folder}: specify the image itself.")
        elif not os.path.isfile(file) and os.path.exists(file):
            report(f"{file} is not a regular file.")  # opening a named pipe could block forever
        else:
            yield file


def _rows(path: Path, reader: Reader, shape: tuple[int, ...], size: int, report: Report) -> Iterator[Part]:
    """Yield the samples of an array or a table, as far as it can be read."""
    row = 0
    try:
        for array in reader(path, shape, size):
            samples, kept = _fitting(array, range(row, row + len(array)), shape, path, report)
            row += len(array)
            yield Part(samples, [text_of(path) or ""] * len(kept), kept)
    except _UNREADABLE as error:
        report(str(error) if isinstance(error, UserError) else f"{path} cannot be read ({reason(error)}).")


def _reader(path: Path) -> Reader | None:
    """Return the reader of an array or a table; None for images and folders."""
    if path.is_dir():
        return None
    return {".npy": _read_array, ".npz": _read_array, ".csv": _read_csv}.get(path.suffix.lower())


def _decoded(files: Sequence[Path], shape: tuple[int, ...], preparation: Preparation | None) -> Part:
    """Decode image files as one batch, resized in the same way as in training."""
    if len(shape) == 1 and preparation is None:
        wrong = f"is not a table, but this model needs {shape[0]} features: use .npy, .npz or .csv files."
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
    """Yield the rows of an array file in order. A memory-mapped file would count towards the memory of the process."""
    with _opened(path, shape) as stream:
        whole, dtype = _header(stream, path)
        if math.prod(whole[1:]) != math.prod(shape):  # check before reading: a wrong header can promise any size
            raise UserError(f"the samples in {path} have shape {whole[1:]}, but this model needs {shape}.")
        row_bytes = dtype.itemsize * math.prod(shape)
        for start in range(0, whole[0], size):
            rows = min(size, whole[0] - start)
            content = bytearray(stream.read(rows * row_bytes))  # torch needs writable memory
            if len(content) < rows * row_bytes:
                raise UserError(f"{path} ends after {start + len(content) // row_bytes} of {whole[0]} samples.")
            yield np.frombuffer(content, dtype).reshape(rows, *whole[1:])


@contextmanager
def _opened(path: Path, shape: tuple[int, ...]) -> Iterator[IO[bytes]]:
    """Open an array file; in an archive, the array `images` or `features`, or the only array."""
    if path.suffix.lower() == ".npy":
        with opened(path, sys.maxsize) as stream:
            yield stream
        return
    wanted = "features" if len(shape) == 1 else "images"
    with opened(path, sys.maxsize) as file, zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        if wanted not in names and len(names) != 1:
            held = f"the arrays {', '.join(names[:10])}" if names else "no arrays"
            raise UserError(f"{path} contains {held}: rename the array to use to {wanted}.")
        with archive.open(f"{wanted if wanted in names else names[0]}.npy") as stream:
            yield stream


def _header(stream: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and type of an array, which must be in row-major order."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, columns_first, dtype = read(stream)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a damaged header can raise anything in NumPy's parser
        raise UserError(f"{path} is not a NumPy array file ({reason(error)}): save it again.") from error
    if dtype.kind not in "biuf" and not dtype.hasobject:
        raise UserError(f"{path} must contain numbers; got {dtype}.")
    if dtype.hasobject or columns_first or not shape:
        what = "Python objects" if dtype.hasobject else "a column-major array" if columns_first else "a single value"
        raise UserError(f"{path} contains {what}: save np.ascontiguousarray(samples) with one row per sample.")
    return shape, dtype


def _read_csv(path: Path, shape: tuple[int, ...], size: int) -> Iterator[np.ndarray]:
    """Read the columns without a reserved name as features; a cell that is not a number becomes NaN."""
    if len(shape) != 1:
        raise UserError(f"{path} is a feature table, but this model needs images of shape {shape}.")
    with opened(path, sys.maxsize) as content, io.TextIOWrapper(content, "utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = next(reader, [])
            used = [k for k, name in enumerate(header) if name.strip() not in RESERVED]
            if len(used) != shape[0]:
                raise UserError(f"{path} has {len(used)} feature columns, but this model needs {shape[0]}.")
            while rows := list(islice((row for row in reader if row), size)):
                yield np.array([[_number(row, k) for k in used] for row in rows])
        except (csv.Error, UnicodeDecodeError) as error:
            raise UserError(f"{path}, line {reader.line_num + 1} is not valid UTF-8 csv ({error}).") from error


def _number(row: list[str], column: int) -> float:
    try:
        return float(row[column])
    except (ValueError, IndexError):
        return np.nan


def _fitting(
    array: np.ndarray, rows: range, shape: tuple[int, ...], path: Path, report: Report
) -> tuple[np.ndarray, Sequence[int]]:
    """Return the samples in the model's input form, and their rows, without rows with non-finite features."""
    if len(shape) == 3:
        samples = as_image_array(array, f"the images of {path}")
    elif array.ndim == 2 and array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # values that are too large become infinite and are skipped
            samples = array.astype(np.float32, copy=False)
    else:
        raise UserError(
            f"the samples in {path} are {array.dtype} of shape {array.shape[1:]}, but this model needs numbers of "
            f"shape ({shape[0]},)."
        )
    if samples.shape[1:] != shape:
        raise UserError(f"the samples in {path} have shape {samples.shape[1:]}, but this model needs {shape}.")
    if len(shape) == 3:
        return np.ascontiguousarray(samples), rows
    finite = np.isfinite(samples).all(1)
    for row in np.flatnonzero(~finite):
        report(f"{path}, row {rows[row]} has a feature that is not a finite number.")
    return samples[finite], [rows[k] for k in np.flatnonzero(finite)]
