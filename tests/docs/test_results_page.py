"""Every table of docs/results.md is what the kept rows say: no number in them was typed by hand."""

import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from papi.experiments import SUITES, cells
from papi.experiments.results import Results
from papi.experiments.suites import Suite
from recipes import page, results
from recipes.rows import collect

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "results.md").read_text()


@pytest.fixture(scope="module")
def kept() -> Results:
    return collect(DOCS / "results", {})


@pytest.mark.parametrize("suite", SUITES["cpu"].values(), ids=lambda suite: suite.name)
def test_writing_it_again_changes_nothing(suite: Suite, kept: Results, tmp_path: Path) -> None:
    written = tmp_path / "results.md"
    shutil.copy(DOCS / "results.md", written)
    page.write(written, suite, "cpu", kept)
    assert written.read_text() == PAGE
    for figure in (tmp_path / "results").glob("*"):
        assert (DOCS / "results" / figure.name).exists(), figure.name


def test_every_result_is_on_the_page(kept: Results) -> None:
    used = {cells.key(config) for suite in SUITES["cpu"].values() for config in suite.cells()}
    assert kept.keys() <= used, "a row that no suite asks for"


def test_every_figure_is_linked_and_there() -> None:
    linked = set(re.findall(r"\(results/([\w-]+\.svg)\)", PAGE))
    assert {file.name for file in (DOCS / "results").glob("*.svg")} == linked
    assert {file.with_suffix(".svg").name for file in (DOCS / "results").glob("*.png")} == linked
    for name in linked:
        assert ElementTree.parse(DOCS / "results" / name).getroot().tag.endswith("svg")


def test_the_recipe_writes_the_same_page_and_rows(kept: Results, tmp_path: Path) -> None:
    """As `python -m recipes.results noise augmentation --tables-only`, on a copy."""
    shutil.copytree(DOCS / "results", tmp_path / "results")
    shutil.copy(DOCS / "results.md", tmp_path)
    suites = [SUITES["cpu"][name] for name in ("noise", "augmentation")]
    results.publish(suites, "cpu", kept, tmp_path / "results", tmp_path / "results.md")
    assert (tmp_path / "results.md").read_text() == PAGE
    for file in (DOCS / "results").glob("*.jsonl"):
        assert (tmp_path / "results" / file.name).read_bytes() == file.read_bytes(), file.name
