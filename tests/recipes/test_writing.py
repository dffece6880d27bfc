"""Pages from templates: numbers are filled in, claims are checked, and a suite of anybody has a page."""

from pathlib import Path

import pytest
from toy_results import SUITE, results

from papi.errors import UserError
from papi.experiments import SUITES
from recipes import writing
from recipes.writing import Writer


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "templates"
    folder.mkdir()
    monkeypatch.setattr(writing, "TEMPLATES", folder)
    return folder


def test_a_suite_without_a_template_has_its_tables(tmp_path: Path) -> None:
    file = Writer(results(), tmp_path).suite(SUITE, "cpu")
    assert file == tmp_path / "results" / "toy.md"
    text = file.read_text()
    assert text.startswith("# A toy\n\n`papi bench toy`: ")
    assert "| PaPi | **83.00 ± 2.45** |" in text
    assert "\n\n\n" not in text


def test_each_scale_has_a_page_of_its_own(tmp_path: Path) -> None:
    writer = Writer({}, tmp_path)
    assert writer.suite(SUITES["paper"]["uniform"], "paper").name == "uniform-paper.md"


def test_numbers_have_one_digit_unless_more_are_asked(templates: Path, tmp_path: Path) -> None:
    (templates / "suite.md").write_text(
        "{{ 1.25 }} {{ 1.256 | two }} {{ 2.5 | whole }} {{ 3 }} {{ [0.12, 3.4] | enumerated }}"
    )
    assert Writer({}, tmp_path).suite(SUITE, "cpu").read_text() == "1.2 1.26 2 3 0.1 and 3.4\n"


def test_a_claim_that_is_not_true_is_remembered_and_the_page_is_written(templates: Path, tmp_path: Path) -> None:
    (templates / "suite.md").write_text("A{{ holds(1 < 2, 'one is less') }}B{{ holds(2 < 1, 'two is less') }}\n")
    writer = Writer({}, tmp_path)
    assert writer.suite(SUITE, "cpu").read_text() == "AB\n"
    assert writer.untrue == ["recipes/pages/suite.md says that two is less, but the rows contradict it."]


def test_a_page_about_missing_runs_is_refused_by_name(templates: Path, tmp_path: Path) -> None:
    (templates / "suite.md").write_text('{{ column("uniform", "q = 0.7")["PaPi"].mean }}')
    with pytest.raises(UserError, match=r"^recipes/pages/suite.md: a page mentions PaPi .*no finished run"):
        Writer({}, tmp_path).suite(SUITE, "cpu")
