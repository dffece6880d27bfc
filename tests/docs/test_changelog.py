"""The changelog keeps to its format, and where it says that modules have moved, that is where they are."""

import re
from importlib.util import find_spec

import pytest

from pages import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
MOVED = re.findall(r"^  \| (`papi\.[^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)


def test_kinds_of_change_are_those_of_the_format() -> None:
    releases = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    assert releases[0].startswith("[Unreleased]")
    for release in releases:
        kinds = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize(("before", "now"), MOVED, ids=[before for before, _ in MOVED])
def test_moved_modules_are_where_it_says(before: str, now: str) -> None:
    old, new = (re.findall(r"`(papi[\w.]+)`", cell) for cell in (before, now))
    if "the same names in" in now:
        (package,) = new
        new = [f"{package}.{name.rpartition('.')[2]}" for name in old]
    for name in new:
        assert find_spec(name) is not None or find_spec(name.rpartition(".")[0]) is not None, name
    assert old
    assert set(old).isdisjoint(new)
