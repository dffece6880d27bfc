"""Changes to values that stay of their form: trees of plain values, arrays, and the bytes of a file."""

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import torch

DIGITS = "@digits@"  # stands for a number too long for Python to write; `as_json` puts it in
TEXTS = (
    "",
    "text",
    "NaN",
    "²",
    "=1+1",
    "\x1b[31mred",
    "right \u202e left",
    "nul \x00 nul",
    "x" * 10_000,
    "../outside/private.txt",
    "../../outside/private.txt",
    "/",
    "trap:Trap",
    "trap_network:build",
    ":",
    "..:x",
    DIGITS,
)
NUMBERS = (
    0,
    -1,
    1,
    3,
    0.3,
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1e300,
    2**31,
    2**40,
    2**63,
    -(2**63),
    10**12,
    10**400,
)
DEPTH = 3000  # deeper than Python reads by default


def nested(depth: int = DEPTH) -> Any:
    """A list in a list in a list …"""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def odd_value(chance: Random) -> Any:
    """A value that is wrong in most places."""
    kind = chance.randrange(6)
    if kind < 2:
        return chance.choice(NUMBERS)
    if kind < 4:
        return chance.choice(TEXTS)
    return chance.choice([None, True, False, [], {}, [[]], {"a": {"b": []}}, [None], [1, "a"], nested(60)])


def change_tree(tree: Any, chance: Random) -> tuple[Any, str]:
    """A tree of dicts, lists and leaves with one change in it, and what was done."""
    places = list(_places(tree))
    if not places or chance.random() < 0.05:
        return chance.choice([[], {}, None, 0, "text", [tree]]), "another tree"
    holder, key = chance.choice(places)
    before = holder[key]
    kind = chance.randrange(7)
    if kind == 0:
        del holder[key]
        return tree, f"{key!r} dropped"
    if kind == 1 and isinstance(holder, dict):
        new = chance.choice([f"{key}x", "unknown_key", "", "__class__"])
        holder[new] = holder.pop(key)
        return tree, f"{key!r} renamed to {new!r}"
    if kind == 2 and isinstance(before, list):
        holder[key] = chance.choice([before[:-1], before * 2, before[::-1], [*before, odd_value(chance)], before[:1]])
        return tree, f"{key!r} of another length"
    holder[key] = change_leaf(before, chance)
    return tree, f"{key!r} is {_short(holder[key])}"


def change_leaf(before: Any, chance: Random) -> Any:
    """Another value in the place of one."""
    if isinstance(before, torch.Tensor):
        return change_tensor(before, chance)
    if isinstance(before, bool) or not isinstance(before, int | float) or chance.random() < 0.4:
        return chance.choice([odd_value(chance), [before], str(before), {"value": before}])
    return chance.choice([-before, before * 1e30, before + 1, before - 1, before + 0.5, *NUMBERS])


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a tree, as the container that holds it and its key."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield tree, key
        yield from _places(value)


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    try:
        return repr(value)[:60]
    except (RecursionError, ValueError):
        return "a value too long to write"


def change_tensor(tensor: torch.Tensor, chance: Random) -> Any:
    """Another tensor: of other shape, type or values."""
    kind = chance.randrange(7)
    if kind == 0:
        return tensor.to(chance.choice([torch.float64, torch.int64, torch.bool, torch.float16, torch.complex64]))
    if kind == 1:
        return tensor.flatten()[: max(0, tensor.numel() - 1)].clone()
    if kind == 2:
        return tensor[None].clone()
    if kind == 3:
        return torch.zeros(0)
    if kind == 4:
        return torch.zeros(1).expand(2**40)  # one number on disk
    if kind == 5 and tensor.is_floating_point():
        return torch.full_like(tensor, chance.choice([math.nan, math.inf, -1e30, 0.0]))
    return tensor.tolist() if tensor.numel() < 100 else torch.zeros_like(tensor) - 1


TYPES = ("?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "U4", "S4", "O", "M8[s]", "V8")


def change_array(array: np.ndarray, chance: Random) -> tuple[np.ndarray, str]:
    """Another array: of other shape, type or values."""
    kind = chance.randrange(4)
    if kind == 0:
        dtype = chance.choice(TYPES)
        try:
            with np.errstate(all="ignore"):
                return array.astype(dtype), f"as {dtype}"
        except (ValueError, TypeError):
            return np.zeros(array.shape, dtype), f"zeros of {dtype}"
    if kind == 1:
        return _other_shape(array, chance)
    changed = array.copy()
    if not changed.size:
        return np.ones(3), "no longer empty"
    place = tuple(chance.randrange(side) for side in changed.shape)
    value = chance.choice([*NUMBERS, *TEXTS]) if changed.dtype.kind in "OUS" else chance.choice(NUMBERS)
    try:
        with np.errstate(all="ignore"):
            changed[place] = value
    except (ValueError, TypeError, OverflowError):
        changed = changed.astype(float) if changed.dtype.kind in "biu" else np.array([str(value)] * max(1, len(array)))
        if changed.dtype.kind == "f":
            changed[place] = min(value, 1e300) if isinstance(value, int | float) else math.nan
    return changed, f"{_short(value)} at {place}"


def _other_shape(array: np.ndarray, chance: Random) -> tuple[np.ndarray, str]:
    shapes = {
        "flat": array.ravel(),
        "one more axis": array[None],
        "a single value": array.ravel()[:1].reshape(()) if array.size else np.zeros(()),
        "empty": array[:0] if array.ndim else np.zeros(0),
        "a row less": array[:-1] if array.ndim else array,
        "twice": np.concatenate([array, array]) if array.ndim else array,
        "transposed": np.asfortranarray(array.T),
        "no columns": array.reshape(len(array), -1)[:, :0] if array.ndim and len(array) else np.zeros((0, 0)),
        "one column": array.reshape(len(array), -1)[:, :1] if array.ndim and len(array) else np.zeros((1, 1)),
    }
    name = chance.choice(list(shapes))
    return shapes[name], name


def change_bytes(content: bytes, chance: Random) -> tuple[bytes, str]:
    """A file with a few bytes flipped, cut off, put in, repeated or set to zero."""
    kind = chance.choice(["flip", "flip", "cut", "insert", "repeat", "zero", "empty"])
    if kind == "empty" or not content:
        return b"", "empty"
    at = chance.randrange(len(content)) if chance.random() < 0.6 else chance.randrange(min(len(content), 200))
    if kind == "flip":
        changed = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 8])):
            changed[chance.randrange(len(content)) if chance.random() < 0.5 else at] ^= 1 << chance.randrange(8)
        return bytes(changed), f"bits flipped near {at}"
    if kind == "cut":
        return content[:at], f"cut at {at}"
    length = chance.choice([1, 4, 64, 4096])
    if kind == "insert":
        return content[:at] + chance.randbytes(length) + content[at:], f"{length} bytes put in at {at}"
    if kind == "repeat":
        return content[:at] + content[max(0, at - length) : at] + content[at:], f"{length} bytes repeated at {at}"
    return content[:at] + bytes(length) + content[at + length :], f"{length} zero bytes at {at}"
