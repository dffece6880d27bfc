"""The pickles of CIFAR, read without running code: only the types that occur in these files are allowed."""

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
    """How Python 3 stores bytes in old pickles. Nothing but Latin-1 occurs."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding}")
    return text.encode("latin1")


class _Type:
    """Stands for `numpy.dtype`, which believes whatever state a pickle gives it and can be made to crash."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code = as_text(code)

    def __setstate__(self, state: object) -> None:
        """Ignore the order of bytes: a single one has none."""


class _Array:
    """Stands for `numpy.ndarray`: an array of bytes, made when its content is known."""

    def __init__(self, *_: object) -> None:
        self.values: np.ndarray = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Type) or kind.code != "u1" or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array that does not hold bytes")
        if not isinstance(shape, tuple) or not all(isinstance(side, int) for side in shape):
            raise pickle.UnpicklingError("an array without a shape")
        order: Literal["F", "C"] = "F" if columns_first else "C"
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order=order).copy()  # torch wants to write to it


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


# What random bytes raise in a pickle; a wrong length asks for more memory than there is.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
    MemoryError, RecursionError,
)  # fmt: skip

_LARGEST = 2**30  # bytes: three times the largest of these files


class _ForbiddenError(Exception):
    """The pickle asks for something that does not belong into data."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ADMITTED:
            raise _ForbiddenError(f"{module}.{name}")
        return _ADMITTED[module, name]


def _require_modest(packed: bytes) -> None:
    """Refuse a pickle whose few bytes would make the reader reserve memory: for a buffer, or for numbered objects."""
    for operation, argument, _ in pickletools.genops(packed):
        number = argument if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and isinstance(argument, int) else 0
        if number > len(packed) or operation.name in ("BYTEARRAY8", "NEXT_BUFFER"):
            raise pickle.UnpicklingError(f"{operation.name} does not occur in such files")


def read_pickle(path: Path) -> dict[str, object]:
    """The dict in a pickle of Python 2 or 3, with text keys; its values are numbers, bytes, lists and arrays."""
    try:
        packed = read_bytes(path, _LARGEST)
        _require_modest(packed)
        content = _Unpickler(io.BytesIO(packed), encoding="bytes").load()
    except _ForbiddenError as error:
        raise UserError(f"{path} asks to run code ({error}): it is not a published file. Delete it.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {reason(error)}. Put the published file there.") from error
    except _DAMAGE as error:
        raise UserError(f"{path} is damaged ({reason(error)}). Fetch the file again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}, not the table of a published file. Fetch it again.")
    return {as_text(key): value.values if isinstance(value, _Array) else value for key, value in content.items()}


def as_text(value: object) -> str:
    """Python 2's text is bytes to Python 3. Anything else that a text was expected to be is shortened."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else shortened(value)
