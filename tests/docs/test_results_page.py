"""Every table of docs/results.md is what the kept rows say: no number in them was typed by hand."""

import shutil
from pathlib import Path

import pytest

from papi.experiments import SUITES, page, rows
from papi.experiments.rows import Results
from papi.experiments.suites import Suite

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def kept() -> Results:
    return rows.collect(DOCS / "results", {})


@pytest.mark.parametrize("suite", SUITES["cpu"].values(), ids=lambda suite: suite.name)
def test_writing_it_again_changes_nothing(suite: Suite, kept: Results, tmp_path: Path) -> None:
    written = tmp_path / "results.md"
    shutil.copy(DOCS / "results.md", written)
    page.write(written, suite, "cpu", kept)
    assert written.read_text() == (DOCS / "results.md").read_text()
    for figure in (tmp_path / "results").glob("*"):
        assert (DOCS / "results" / figure.name).exists(), figure.name
