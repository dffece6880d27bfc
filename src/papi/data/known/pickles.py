"""Reads the pickle files of CIFAR without running code: only the types that occur in them are allowed."""

import io
import pickle
import pickletools
from pathlib import Path
from reprlib import repr as shortened
from typing import Literal

import numpy as np

from papi.errors import UserError
from papi.files.reading import read_bytes, reason


def _encode(text: str, encoding: str) -> bytes:
    """Decode bytes as Python 3 stores them in old pickles. Only Latin-1 occurs."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding}")
    return text.encode("latin1")


class _Type:
    """Replaces `numpy.dtype`, which trusts the state in a pickle and can be made to crash."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code = as_text(code)

    def __setstate__(self, state: object) -> None:
        """Ignore the byte order: single bytes have none."""


class _Array:
    """Replaces `numpy.ndarray`: an array of bytes that is created when its content is known."""

    def __init__(self, *_: object) -> None:
        self.values: np.ndarray = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Type) or kind.code != "u1" or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array that does not hold bytes")
        if not isinstance(shape, tuple) or not all(isinstance(side, int) for side in shape):
            raise pickle.UnpicklingError("an array without a shape")
        order: Literal["F", "C"] = "F" if columns_first else "C"
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order=order).copy()  # torch needs writable memory


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


# Exceptions that a damaged pickle raises; a wrong length can request more memory than there is.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
    MemoryError, RecursionError,
)  # fmt: skip

_LARGEST = 2**30  # bytes: three times the largest of these files


class _ForbiddenError(Exception):
    """The pickle asks for a type that does not occur in data."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ADMITTED:
            raise _ForbiddenError(f"{module}.{name}")
        return _ADMITTED[module, name]


def _require_modest(packed: bytes) -> None:
    """Reject a small pickle that would make the reader allocate much memory for a buffer or numbered objects."""
    for operation, argument, _ in pickletools.genops(packed):
        number = argument if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and isinstance(argument, int) else 0
        if number > len(packed) or operation.name in ("BYTEARRAY8", "NEXT_BUFFER"):
            raise pickle.UnpicklingError(f"{operation.name} does not occur in such files")


def read_pickle(path: Path) -> dict[str, object]:
    """Return the dict in a pickle of Python 2 or 3, with string keys and numbers, bytes, lists or arrays as values."""
    try:
        packed = read_bytes(path, _LARGEST)
        _require_modest(packed)
        content = _Unpickler(io.BytesIO(packed), encoding="bytes").load()
    except _ForbiddenError as error:
        raise UserError(f"{path} tries to run code ({error}), so it is not the published file: delete it.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): replace it with the published file.") from error
    except _DAMAGE as error:
        raise UserError(f"{path} is damaged ({reason(error)}): download the file again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} contains a {type(content).__name__} instead of a dict: download the file again.")
    return {as_text(key): value.values if isinstance(value, _Array) else value for key, value in content.items()}


def as_text(value: object) -> str:
    """Convert a value to text. Python 2 strings are bytes in Python 3; other types are shortened."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else shortened(value)
