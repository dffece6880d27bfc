"""The reference of the Python API: it names what exists and all that is public, and its examples run."""

import doctest
import re
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import papi
from pages import DOCS
from papi.config import RunConfig
from papi.train import train

PAGES = sorted((DOCS / "reference").glob("api*.md"))


@cache
def documented() -> list[str]:
    """The full names that the pages list."""
    names = []
    for page in PAGES:
        module = ""
        for directive, name in re.findall(r"^\.\. (currentmodule|auto\w+):: (\S+)$", page.read_text(), re.MULTILINE):
            if directive == "currentmodule":
                module = name
            else:
                names.append(name if name.startswith("papi.") else f"{module}.{name}")
    return names


def found(name: str) -> object:
    """The object that a full name leads to."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            module: ModuleType = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[count:], module)
    raise AssertionError(name)


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for name in documented() for test in finder.find(found(name), name, globs={})]
    return [test for test in tests if test.examples]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run that examples load."""
    place = tmp_path_factory.mktemp("examples")
    for _ in train(RunConfig(data="digits", limit=100, epochs=1, threads=1), place / "runs" / "digits"):
        pass
    return place


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_examples_run(test: doctest.DocTest, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(digits)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert result.failed == 0, "".join(told)


def test_what_the_package_exports_is_documented() -> None:
    exported = {f"papi.{name}" for name in papi.__all__ if not name.startswith("_")}
    assert exported - set(documented()) == set()


def test_the_main_names_have_examples() -> None:
    shown = {test.name for test in examples()}
    main = {"papi.load", "papi.Model", "papi.PartialLabelClassifier", "papi.train.train", "papi.networks.build"}
    assert main | {"papi.methods.base.Method", "papi.data.candidates.uniform"} <= shown
