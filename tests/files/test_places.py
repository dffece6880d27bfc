"""Where the cache lies."""

import sys
from pathlib import Path

import pytest

from papi.files.places import cache_dir


def test_a_named_cache(cache: Path) -> None:
    assert cache_dir() == cache


@pytest.mark.skipif(sys.platform != "linux", reason="each system has its own place")
@pytest.mark.parametrize("named", [None, ""], ids=["unset", "empty"])
def test_the_cache_of_the_user(named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty name is no name: it would be the working folder."""
    if named is None:
        monkeypatch.delenv("PAPI_CACHE")
    else:
        monkeypatch.setenv("PAPI_CACHE", named)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_dir() == Path("/somewhere/papi")
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("XDG_CACHE_HOME")
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_dir() == tmp_path / ".cache" / "papi"
    assert list(tmp_path.iterdir()) == [], "asking where it lies does not make it"


def test_a_name_relative_to_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPI_CACHE", "here")
    assert cache_dir() == Path("here")
