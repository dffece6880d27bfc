"""The exception for bad input, and a helper that suggests the correct spelling of a name."""

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED, _COMPARED, _LONGEST = 200, 10_000, 200  # names in a message, names to compare, characters of a name


class UserError(ValueError):
    """Bad input. The message gives the cause, the value and the remedy; `papi` prints it and exits with code 2."""


def unknown(kind: str, got: str, known: Iterable[str], other: str | None = None) -> UserError:
    """Return an error about an unknown name that suggests the closest known name and lists all.

    `other` is the form of a name that is not in the list.
    """
    known = list(known)
    nearest = _nearest(got, known)
    hint = "choose" if nearest is None else f"did you mean {nearest!r}? Choose"
    shown = got if len(got) <= _LONGEST else f"{got[:_LONGEST]}…"
    last = "" if other is None else f", or {other}"
    return UserError(f"unknown {kind} {shown!r}: {hint} from {_listed(known)}{last}.")


def missing(where: object, kind: str, wanted: str, found: Iterable[str]) -> UserError:
    """Return an error about a missing name, such as that of a column, that suggests the closest name found."""
    found = list(found)
    nearest = _nearest(wanted, found)
    others = f", only {_listed(found)}" if found else ""
    hint = "add it." if nearest is None else f"did you mean {nearest!r}?"
    return UserError(f"{where} has no {kind} {wanted!r}{others}: {hint}")


def _nearest(name: str, names: list[str]) -> str | None:
    close = get_close_matches(name[:_LONGEST].lower(), names[:_COMPARED], n=1, cutoff=0.5)
    return close[0] if close else None


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{rest}"
