"""Reads records from JSON objects and arrays, and checks the type of each field.

Invalid values raise `ValueError` with the reason.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

import numpy as np

from papi.config import Values
from papi.data.packed_rows import Matrix

T = TypeVar("T")


def json_object(values: object, what: str) -> Values:
    """A copy of a JSON object; `what` names it in the message."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} must be a JSON object; got {_shown(values)}")
    return dict(values)


def tuple_of_texts(values: Values, name: str) -> tuple[str, ...]:
    """The field `name`, a list of texts; empty if it is missing."""
    listed = values.get(name) or []
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise ValueError(f"{name} is not a list of texts")
    return tuple(listed)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number that fits into an array."""
    return isinstance(value, float) or is_whole(value)


def is_whole(value: object) -> bool:
    """An integer that fits into an array. JSON allows larger ones, which would overflow."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def record_of_json(kind: type[T], values: object, what: str) -> T:
    """A dataclass from a JSON object. Unknown names are from a later version and are ignored."""
    of_any_kind: type = kind
    hints = _hints(of_any_kind)
    read = {name: value for name, value in json_object(values, what).items() if name in hints}
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if required and each.name not in read:
            raise ValueError(f"{what} needs {each.name}")
    for name, value in read.items():
        if not _suits(value, hints[name]):
            raise ValueError(f"{name} is {_shown(value)}, which does not fit")
    return kind(**read)


@cache
def _hints(kind: type) -> dict[str, object]:
    return typing.get_type_hints(kind)


def _shown(value: object) -> str:
    return shorten(repr(value), 60, placeholder=" …")


def require_settings(values: object, kind: type, version: str) -> None:
    """Raise ValueError for an unknown setting or a wrong type, which a dataclass would accept."""
    hints = _hints(kind)
    for name, value in json_object(values, "settings").items():
        if name not in hints:
            raise ValueError(
                f"PaPi {version} wrote them, and its setting {name!r} is unknown here: use that version of PaPi"
            )
        hint = hints[name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            require_settings(value, hint, version)
            continue
        typed = Path(value) if isinstance(value, str) and Path in (hint, *typing.get_args(hint)) else value
        if not _suits(tuple(value) if isinstance(value, list) else typed, hint):
            raise ValueError(f"{name} is {_shown(value)}, which does not fit")


def _suits(value: object, hint: object) -> bool:
    """Whether a value has the type that a record declares."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_suits(value, each) for each in parts)
    if origin is typing.Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and all(_suits(each, parts[0]) for each in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(_suits(each, parts[1]) for each in value.values())
    if hint is float:
        return is_number(value)
    if hint is int:
        return is_whole(value)
    return hint is typing.Any or (isinstance(hint, type) and isinstance(value, hint))


def known_arrays(record: Any) -> dict[str, np.ndarray]:
    """The arrays of a record by name, without those that are `None`."""
    values = {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}
    return {name: value for name, value in values.items() if value is not None}


def all_parts(parts: list[np.ndarray | None]) -> list[np.ndarray]:
    """The parts of packed rows, none of which may be missing."""
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise ValueError("a part of its packed rows is missing")
    return found


def record_of_arrays(kind: type[T], arrays: Mapping[str, Any], table: str, kinds: str) -> T:
    """A record of arrays, with a required table `(N, K)` of numbers of one of NumPy's `kinds`."""
    names = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if table not in arrays:
        raise ValueError(f"it has no array {table}")
    found = arrays[table]
    if len(found.shape) != 2 or 0 in found.shape or found.dtype.kind not in kinds:
        raise ValueError(unfit(table, found))
    return kind(**{name: value for name, value in arrays.items() if name in names})


def require_numbers(name: str, array: np.ndarray | None, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless an array has floats and this shape; None stands for any length."""
    if array is None:
        return
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.dtype.kind != "f":
        raise ValueError(unfit(name, array))


def require_places(name: str, array: np.ndarray | None, count: int | None, below: int | None) -> None:
    """Raise ValueError unless an array has `count` integers from 0 to below `below`; None stands for any number."""
    if array is None:
        return
    fits = array.ndim == 1 and array.dtype.kind in "iu" and count in (None, len(array))
    if not fits or (array < 0).any() or (below is not None and (array >= below).any()):
        raise ValueError(unfit(name, array))


def unfit(name: str, array: Matrix) -> str:
    """The message about an array that a record cannot have."""
    return f"its array {name} does not fit: it has the shape {array.shape} and the type {array.dtype}"
