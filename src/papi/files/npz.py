"""Reads arrays from untrusted files. Memory is allocated only for data that the file really contains."""

import errno
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.lib import format as npy

from papi.files.reading import memory_bytes, opened, plain_file, reason

_ENCRYPTED = 1  # the bit of a member of an archive that says so


def read_npz(path: Path, inside: Path | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file. `inside` is the folder that must contain it, if any.

    A file that cannot be opened raises OSError; invalid content raises ValueError.
    """
    with opened(path, memory_bytes(), inside) as stream, _damage(), zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > memory_bytes():
            raise ValueError(f"its arrays take {total / 1e9:,.0f} GB, more than this machine has")
        return {member.filename.removesuffix(".npy"): _read_member(archive, member) for member in members}


def read_npy(path: Path, inside: Path | None = None) -> np.ndarray:
    """Read the array of an .npy file, with the same errors."""
    with opened(path, memory_bytes(), inside) as stream, _damage():
        size = stream.seek(0, 2)
        stream.seek(0)
        return _read_array(stream, size, "the array")


def map_npy(path: Path) -> np.memmap:
    """Memory-map the array of an .npy file of any size, with the same errors.

    It is copied on write, and the file is never changed. The system refuses that for an array larger than its memory,
    which is then read-only.
    """
    file = plain_file(path, most=2**63)
    try:
        return _map(file, "c")
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        return _map(file, "r")


def _map(file: Path, mode: Literal["c", "r"]) -> np.memmap:
    with _damage():
        found: np.memmap = npy.open_memmap(file, mode=mode)
    return found


@contextmanager
def _damage() -> Iterator[None]:
    """Damage is a ValueError, wherever it shows: in zipfile, zlib, tokenize or numpy."""
    try:
        yield
    except Exception as error:
        # A damaged directory of an archive can lead to a place before the file begins, which is EINVAL.
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, None):
            raise
        raise ValueError(reason(error)) from error


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.flag_bits & _ENCRYPTED:
        raise ValueError(f"{member.filename} in it is encrypted")
    with archive.open(member) as stream:
        return _read_array(stream, member.file_size, f"{member.filename} in it")


def _read_array(stream: IO[bytes], size: int, name: str) -> np.ndarray:
    """An array of numbers or texts out of a stream of `size` bytes, whose header is believed only if that fits."""
    if stream.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
        raise ValueError(f"{name} is not an array of NumPy")
    stream.seek(0)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} is an array with named columns, or of a later version of NumPy")
    shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which could run code (pickle)")
    count = math.prod(shape)
    if any(side < 0 for side in shape) or (count and not dtype.itemsize) or count * dtype.itemsize > size:
        raise ValueError(f"{name} is said to have the shape {shape}, which does not fit its {size:,} bytes")
    stream.seek(0)
    array: np.ndarray = npy.read_array(stream, allow_pickle=False)
    if dtype.kind == "U" and not _is_text(array):
        raise ValueError(f"{name} holds texts that are not Unicode")
    return array


def _is_text(array: np.ndarray) -> bool:
    """Whether all characters of texts exist: NumPy takes any four bytes for one, and fails when it hands them out."""
    codes = np.ascontiguousarray(array).reshape(-1).view(array.dtype.str.replace("U", "u")[:2] + "4")
    return not (codes > 0x10FFFF).any() and not ((codes >= 0xD800) & (codes < 0xE000)).any()
