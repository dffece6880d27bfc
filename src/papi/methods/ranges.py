"""Search ranges of settings, which a field of a method's `Config` declares in its type.

    temperature: Annotated[float, Between(0.1, 1.0, log=True)] = 0.3

`papi tune` samples from these ranges. They do not limit the values that a `Config` accepts.
"""

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from papi.errors import UserError
from papi.methods.config import MethodConfig

DIGITS = 3  # significant digits of a sampled number: precise enough, and short to type


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`, also for both numbers of a pair; uniform, or log-uniform with `log`."""

    low: float
    high: float
    log: bool = False

    def draw(self, generator: np.random.Generator, kind: Any) -> Any:
        """A value for a field of this type: `float`, `int`, or a tuple of them."""
        if typing.get_origin(kind) is tuple:
            return tuple(self.draw(generator, part) for part in typing.get_args(kind))
        if kind is int:
            # Half a step beyond both ends, so that the ends are as likely as the numbers between them.
            place = self._place(generator.random(), self.low - 0.5, self.high + 0.5)
            return int(min(max(round(place), self.low), self.high))
        return min(
            max(float(f"{self._place(generator.random(), self.low, self.high):.{DIGITS}g}"), self.low), self.high
        )

    def _place(self, share: float, low: float, high: float) -> float:
        return low * (high / low) ** share if self.log else low + share * (high - low)

    def holds(self, value: Any) -> bool:
        """Whether a value, or both numbers of a pair, are in the range."""
        return all(self.low <= each <= self.high for each in (value if isinstance(value, tuple) else (value,)))

    def fault(self, kind: Any) -> str | None:
        """The error in this range for a field of the type, or None."""
        parts = typing.get_args(kind) if typing.get_origin(kind) is tuple else (kind,)
        if not set(parts) <= {int, float}:
            return "is for numbers"
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            return "must go from a number to a larger one"
        if int in parts and (self.low % 1 or self.high % 1):
            return "must begin and end with a whole number"
        return "must begin above 0 to be logarithmic" if self.log and self.low <= 0 else None

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Among:
    """A few values, each as likely as the others."""

    values: tuple[Any, ...]

    def draw(self, generator: np.random.Generator, kind: Any) -> Any:
        """One of the values."""
        return self.values[int(generator.integers(len(self.values)))]

    def holds(self, value: Any) -> bool:
        """Whether it is one of the values."""
        return value in self.values

    def fault(self, kind: Any) -> str | None:
        """The error in these values, or None."""
        return None if len(set(self.values)) > 1 else "must have two values or more"

    def __str__(self) -> str:
        return ",".join(map(str, self.values))


Range = Between | Among


def ranges_of(kind: type[MethodConfig]) -> dict[str, Range]:
    """The range of every field that has one, by name. Raises a UserError if a range is invalid."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found: dict[str, Range] = {}
    for field in dataclasses.fields(kind):
        declared = [each for each in getattr(hints[field.name], "__metadata__", ()) if isinstance(each, Range)]
        for each in declared:
            require_sound(f"the range of {field.name} in {kind.__name__}", each, type_of(kind, field.name))
            found[field.name] = each
    return found


def type_of(kind: type[MethodConfig], name: str) -> Any:
    """The plain type of a field."""
    return typing.get_type_hints(kind)[name]


def require_sound(what: str, given: Range, kind: Any) -> None:
    """Raise a UserError if nothing can be sampled from a range."""
    fault = given.fault(kind)
    if fault is not None:
        raise UserError(f"{what} {fault}; got {given}.")
