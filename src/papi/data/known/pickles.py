"""The pickles of CIFAR, read without running code: only the types that occur in these files are allowed."""

import pickle
from pathlib import Path

import numpy as np

from papi.errors import UserError


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 stores bytes in old pickles. Nothing but Latin-1 occurs."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding}")
    return text.encode("latin1")


_RECONSTRUCT = np.empty(0).__reduce__()[0]  # NumPy's own; its address differs between versions
_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
}


# What random bytes raise in a pickle; a wrong length asks for more memory than there is.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
    MemoryError,
)  # fmt: skip


class _ForbiddenError(Exception):
    """The pickle asks for something that does not belong into data."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ADMITTED:
            raise _ForbiddenError(f"{module}.{name}")
        return _ADMITTED[module, name]


def read_pickle(path: Path) -> dict[str, object]:
    """The dict in a pickle of Python 2 or 3, with text keys; its values are numbers, bytes, lists and arrays."""
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except _ForbiddenError as error:
        raise UserError(f"{path} asks to run code ({error}): it is not a published file. Delete it.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}. Put the published file there.") from error
    except _DAMAGE as error:
        raise UserError(f"{path} is damaged ({error}). Fetch the file again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}, not the table of a published file. Fetch it again.")
    return {as_text(key): value for key, value in content.items()}


def as_text(value: object) -> str:
    """Python 2's text is bytes to Python 3."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
