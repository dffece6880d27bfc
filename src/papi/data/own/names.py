"""Detects suspicious class names: several labels in one name, or different spellings of one label."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

SEPARATORS = ("|", ";", ",", "/", "&", "+", " ")
_COMPARED = 10_000  # names to compare; a column with more does not contain labels
_SHOWN = 3


def joined(names: Sequence[str]) -> dict[str, list[str]]:
    """Return names that look like several labels, by their separator: `{",": ["rose, tulip"]}`.

    Each part must also occur in another name, so `Washington, D.C.` is one label. A space separates labels only if
    every part is itself a name.
    """
    found: dict[str, list[str]] = {}
    whole = set(names[:_COMPARED])
    for separator in SEPARATORS:
        parts = {name: _parts(name, separator) for name in names[:_COMPARED]}
        uses = Counter(part for each in parts.values() for part in set(each))
        several = [
            name
            for name, each in parts.items()
            if len(each) > 1 and all(part in whole if separator == " " else uses[part] > 1 for part in each)
        ]
        if several:
            found[separator] = several
    return found


def alike(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return groups of names that differ only in case, spaces, hyphens, accents, a plural s, or number format."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names[:_COMPARED]:
        groups[_key(name)].append(name)
    for key in list(groups):
        for ending in ("s", "es"):
            stem = key.removesuffix(ending)
            if stem != key and len(stem) > 2 and stem in groups and key in groups:
                groups[stem] += groups.pop(key)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def suspicions(names: Sequence[str], option: str) -> tuple[str, ...]:
    """Return a note for each kind of suspicious names. `option` is the option that sets the separator."""
    found = [
        f"{_listed(several)} {'looks' if len(several) == 1 else 'look'} like several labels in one name: if so, set "
        f"the separator with {option} '{separator}'."
        for separator, several in joined(names).items()
    ]
    groups = [" and ".join(map(repr, group[:_SHOWN])) for group in alike(names)]
    if groups:
        more = f", and {len(groups) - _SHOWN:,} more such groups" if len(groups) > _SHOWN else ""
        found.append(
            f"{'; '.join(groups[:_SHOWN])}{more} are treated as different classes: if they mean the same, give them "
            "the same name."
        )
    return tuple(found)


def _parts(name: str, separator: str) -> list[str]:
    """Return the labels in a name; the name itself if a part would be empty."""
    parts = [part.strip() for part in name.split(separator)]
    return parts if all(parts) else [name]


def _key(name: str) -> str:
    """Return a name without case, accents, spaces and hyphens; for a number, its value."""
    try:
        return repr(float(name))
    except ValueError:
        plain = unicodedata.normalize("NFKD", name.casefold())
        return "".join(each for each in plain if each.isalnum() or (not each.isascii() and not _is_mark(each))) or name


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) != 0


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(repr, names[:_SHOWN]))}{more}"
