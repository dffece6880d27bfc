"""The one exception that stands for a mistake of the person at the keyboard, and the nearest name to a misspelt one."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Bad input. The message says what is wrong, what was got and what to do; `papi` prints it and exits with 2."""


def unknown(kind: str, got: str, known: Iterable[str]) -> UserError:
    """`unknown("method", "pappi", METHODS)` suggests the nearest name and lists the rest."""
    known = list(known)
    nearest = get_close_matches(got.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return UserError(f"there is no {kind} {got!r}: {hint}known are {', '.join(known)}.")
