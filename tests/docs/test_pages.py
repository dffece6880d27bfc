"""All pages: links lead somewhere, and names and paths exist."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from pages import DOCS, PAGES, ROOT, without_blocks

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
OUR_FOLDERS = "src|tests|docs|recipes|benchmarks|examples"
PLACEHOLDER = re.compile(r"\b(test_)?yours\b")  # what a reader is to write


def anchors(text: str) -> set[str]:
    """What a link can point to in a page: its headings, spelt as GitHub does."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text()), target


@every_page
def test_names_of_the_package_exist(page: Path) -> None:
    for name in re.findall(r"`(papi(?:\.\w+)+)(?:\([^`]*\))?`", page.read_text()):
        if name != "papi.toml" and not PLACEHOLDER.search(name):  # a file, not a module
            assert exists(name), name


def exists(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[count:], module)
        except AttributeError:
            return False
        return True
    return False


@every_page
def test_files_of_the_project_exist(page: Path) -> None:
    for path in re.findall(rf"`((?:{OUR_FOLDERS})/[^`\s:]*)", page.read_text()):
        if not PLACEHOLDER.search(path):
            assert list(ROOT.glob(path.rstrip("/"))), path


def listed(text: str) -> list[str]:
    """The pages that a page of the site lists below itself."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for tree in trees for line in tree.split() if not line.startswith(":") and not line.isdigit()]


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        text = page.read_text()
        targets = re.findall(r"\]\(([^)\s#]+)", text) + [f"{name}.md" for name in listed(text)]
        waiting += [page.parent / target for target in targets if (page.parent / target).exists()]
    assert {page for page in DOCS.rglob("*.md") if page.resolve() not in seen} == set()


def test_the_checks_find_what_they_look_for() -> None:
    """They would pass on pages they cannot read."""
    assert exists("papi.train.fit")
    assert exists("papi.load")
    assert not exists("papi.nothing")
    assert not exists("papi.train.nothing")
    assert anchors("# One, two\n```\n# three\n```\n") == {"one-two"}
