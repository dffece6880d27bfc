"""Reads dense and sparse numeric matrices from MATLAB's format 5 (its options -v6 and -v7).

SciPy's reader trusts the lengths in a file, so a damaged file can crash the process. This reader supports only matrices
and checks every length before it uses it. Names of types and classes follow MATLAB's description of the format.
"""

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np

_HEADER = 128
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_SPARSE, _NUMBERS = 5, range(6, 16)  # classes of matrices
_COMPLEX = 8  # a flag


def read_variables(content: bytes, most: int) -> dict[str, np.ndarray | None]:
    """Return the variables of a file by name; None for a variable that is not a matrix of real numbers.

    Raises
    ------
    NotImplementedError
        If the file has another version.
    ValueError
        If the file is damaged or its variables take more than `most` bytes.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None or len(content) < _HEADER:
        raise ValueError("it does not have the header of MATLAB's format 5")
    if struct.unpack(f"{order}H", content[124:126])[0] >> 8 != 1:
        raise NotImplementedError
    found: dict[str, np.ndarray | None] = {}
    for kind, data in _elements(content[_HEADER:], order):
        if kind == _COMPRESSED:
            kind, data = next(_elements(_unpacked(data, most), order), (0, b""))
        if kind != _MATRIX:
            raise ValueError(f"it has an element of type {kind} instead of a variable")
        name, matrix = _variable(data, order, most)
        most -= 0 if matrix is None else matrix.nbytes
        found[name] = matrix
    return found


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the data of each element."""
    place = 0
    while place < len(content):
        if len(content) - place < 8:
            raise ValueError("it ends within an element")
        kind, size = struct.unpack(f"{order}II", content[place : place + 8])
        place += 8
        if kind >> 16:  # short element: at most four bytes, stored in the second half of these eight
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise ValueError(f"a short element has {size} bytes")
            yield kind, content[place - 4 : place - 4 + size]
            continue
        if size > len(content) - place:
            raise ValueError("it ends within an element")
        yield kind, content[place : place + size]
        place += size if kind == _COMPRESSED else size + -size % 8


def _unpacked(data: bytes, most: int) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, most)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        raise ValueError("a compressed variable is truncated or does not fit into memory")
    return content


def _variable(data: bytes, order: str, most: int) -> tuple[str, np.ndarray | None]:
    """Return the name and the matrix of one variable."""
    parts = _elements(data, order)
    flags, sizes, named = (_part(parts) for _ in range(3))
    values = _numbers(flags, order)
    shape = tuple(_numbers(sizes, order).tolist())
    name = named[1].decode("latin-1")
    if not len(values) or any(not isinstance(side, int) or side < 0 for side in shape) or len(shape) < 2:
        raise ValueError(f"the variable {name!r} has no shape")
    word = int(values[0])
    kind, complex_numbers = word & 0xFF, bool((word >> 8) & _COMPLEX)
    if complex_numbers or (kind != _SPARSE and kind not in _NUMBERS):
        return name, None
    if kind == _SPARSE:
        rows, starts, entries = (_numbers(_part(parts), order) for _ in range(3))
        return name, _dense(shape, rows, starts, entries, most)
    entries = _numbers(_part(parts), order)
    if len(entries) != math.prod(shape):
        raise ValueError(f"the variable {name!r} has {len(entries)} numbers for the shape {shape}")
    return name, entries.reshape(shape, order="F")


def _part(parts: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    try:
        return next(parts)
    except StopIteration:
        raise ValueError("a variable ends before its values") from None


def _numbers(part: tuple[int, bytes], order: str) -> np.ndarray:
    """Return the numbers of an element, `(n,)`, in their stored type."""
    kind, data = part
    if kind not in _TYPES:
        raise ValueError(f"it has an element of type {kind} instead of numbers")
    stored = np.dtype(order + _TYPES[kind])
    if len(data) % stored.itemsize:
        raise ValueError("an element ends within a number")
    return np.frombuffer(data, stored).astype(stored.newbyteorder("="))


def _dense(shape: tuple[int, ...], rows: np.ndarray, starts: np.ndarray, entries: np.ndarray, most: int) -> np.ndarray:
    """Convert a sparse matrix to a dense one from the row of each entry and the start of each column."""
    if len(shape) != 2 or math.prod(shape) * entries.dtype.itemsize > most:
        raise ValueError(f"a sparse variable of shape {shape} does not fit into memory")
    if rows.dtype.kind not in "iu" or starts.dtype.kind not in "iu" or len(starts) != shape[1] + 1:
        raise ValueError("a sparse variable does not say where its columns start")
    rows, starts = rows.astype(np.int64), starts.astype(np.int64)
    count = int(starts[-1])
    lengths = np.diff(starts)
    if starts[0] != 0 or (lengths < 0).any() or count > min(len(rows), len(entries)):
        raise ValueError("the columns of a sparse variable do not start in order")
    rows = rows[:count]
    if len(rows) and not 0 <= rows.min() <= rows.max() < shape[0]:
        raise ValueError("a sparse variable has an entry outside its shape")
    matrix = np.zeros(shape, entries.dtype)
    matrix[rows, np.repeat(np.arange(shape[1]), lengths)] = entries[:count]
    return matrix
