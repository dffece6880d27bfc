"""The one exception that stands for a mistake of the person at the keyboard, and the nearest name to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED, _COMPARED, _LONGEST = 200, 10_000, 200  # names in a message, names compared with, characters of a name


class UserError(ValueError):
    """Bad input. The message says what is wrong, what was got and what to do; `papi` prints it and exits with 2."""


def unknown(kind: str, got: str, known: Iterable[str]) -> UserError:
    """`unknown("method", "pappi", METHODS)` suggests the nearest name and lists the rest, if they are not very many."""
    known = list(known)
    nearest = get_close_matches(got[:_LONGEST].lower(), known[:_COMPARED], n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    shown = got if len(got) <= _LONGEST else f"{got[:_LONGEST]}…"
    rest = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return UserError(f"there is no {kind} {shown!r}: {hint}known are {', '.join(known[:_LISTED])}{rest}.")
