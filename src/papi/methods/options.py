"""Parses the settings of a method from `--option KEY=VALUE` according to the types of its `Config`."""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from papi.config import Values
from papi.errors import UserError, unknown
from papi.methods.config import MethodConfig


def parse_options(kind: type[MethodConfig], options: Mapping[str, str]) -> Values:
    """Convert texts to the types of the `Config` fields: `{"mixup": "off"}` gives `{"mixup": False}`."""
    hints = typing.get_type_hints(kind)
    fields = [f.name for f in dataclasses.fields(kind)]
    for name in options:
        if name not in fields:
            raise (
                unknown("option", name, fields)
                if fields
                else UserError(f"unknown option {name!r}: this method has no options.")
            )
    return {name: _parse(name, text, hints[name]) for name, text in options.items()}


def _parse(name: str, text: str, hint: Any) -> Any:
    """Convert one value to its type; raise a UserError that lists the choices if it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    try:
        if origin is Literal:
            if text not in arguments:
                raise ValueError
            return text
        if origin in (typing.Union, types.UnionType):  # the only union here is "or none"
            return None if text == "none" else _parse(name, text, next(a for a in arguments if a is not type(None)))
        if origin is tuple:
            parts = text.split(",")
            return tuple(_parse(name, part, kind) for part, kind in zip(parts, arguments, strict=True))
        if hint is bool:
            return {"on": True, "true": True, "off": False, "false": False}[text.lower()]
        return hint(text)
    except (ValueError, KeyError) as error:
        wanted = (
            f"one of {', '.join(arguments)}" if origin is Literal
            else "on or off" if hint is bool
            else f"{len(arguments)} numbers separated by commas" if origin is tuple
            else f"a value of type {getattr(hint, '__name__', hint)}"
        )  # fmt: skip
        raise UserError(f"--option {name}={text} is not valid: use {wanted}.") from error


def require_positive(config: MethodConfig, *names: str) -> None:
    """Stop if one of these settings is not a number above 0."""
    _require(config, names, lambda value: 0 < value < math.inf, "above 0")


def require_not_negative(config: MethodConfig, *names: str) -> None:
    """Stop if one of these settings is not 0 or more."""
    _require(config, names, lambda value: 0 <= value < math.inf, "0 or more")


def require_share(config: MethodConfig, *names: str) -> None:
    """Stop if one of these settings is not between 0 and 1, or a pair is not."""
    _require(config, names, lambda value: 0 <= value <= 1, "between 0 and 1")


def _require(config: MethodConfig, names: tuple[str, ...], fits: Callable[[float], bool], wanted: str) -> None:
    for name in names:
        given = getattr(config, name)
        values = given if isinstance(given, tuple) else (given,)
        if not all(map(fits, values)):
            raise UserError(f"--option {name} must be {wanted}; got {','.join(f'{value:g}' for value in values)}.")
