"""The results pages are what the kept rows say: no number in their tables or sentences was typed by hand."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from toy_results import result

from pages import without_blocks
from papi.experiments import SUITES, cells
from papi.experiments.results import Results
from papi.experiments.tables import outcome
from recipes import glance, results
from recipes.rows import collect
from recipes.writing import ORDER, TEMPLATES, Writer

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = ["results.md", *(f"results/{file.name}" for file in sorted((DOCS / "results").glob("*.md")))]
# Names with digits, and what was asked of runs. Everything else with a digit is a measurement.
NAMES = re.compile(
    r"CIFAR-100-H|CIFAR-100?|ResNet-18|x86-64|AVX2|AVX-512|Variant [12]|\bv[23]\b|100 classes|ICLR 2025|arXiv:[\d.]+"
    r"|q = 0\.\d+(, 0\.\d+)*( and 0\.\d+)?"
)
COUNTED = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|half|third|quarter|dozen)"
    r"( and a half)?( of)?( a)? (points?|percent|%)"
)


@pytest.fixture(scope="module")
def kept() -> Results:
    return collect(DOCS / "results", {})


@pytest.fixture(scope="module")
def written(kept: Results, tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """All pages, written again from the rows."""
    writer = Writer(kept, tmp_path_factory.mktemp("docs"))
    for suite in SUITES["cpu"].values():
        writer.suite(suite, "cpu")
    writer.summary()
    return writer


@pytest.mark.parametrize("page", GENERATED)
def test_writing_a_page_again_changes_nothing(page: str, written: Writer) -> None:
    assert (written.docs / page).read_text() == (DOCS / page).read_text()


def test_every_page_and_figure_is_written_and_no_other(written: Writer) -> None:
    for kind in ("md", "svg", "png"):
        there = {file.name for file in (DOCS / "results").glob(f"*.{kind}")}
        assert there == {file.name for file in (written.docs / "results").glob(f"*.{kind}")}


def test_what_the_pages_claim_is_true(written: Writer) -> None:
    assert written.untrue == []


def test_the_overview_is_short() -> None:
    assert len((DOCS / "results.md").read_text().splitlines()) <= 150


def test_the_overview_stays_short_and_true_to_its_rows_when_all_is_run(kept: Results, tmp_path: Path) -> None:
    """More rows need no change of a template."""
    every = dict(kept)
    for suite in SUITES["cpu"].values():
        for table in (*suite.tables, *(figure.table for figure in suite.figures)):
            for task in table.tasks:
                for entry in table.entries:
                    have = () if entry.label == "EM" else outcome(table, entry, task, every).runs.keys()
                    for seed in set(table.seeds).difference(have):
                        new = result(table, entry, seed, 0.99 if entry.label == "EM" else 0.5, task)
                        more = {"mean_candidates": 3.0, "disambiguation_accuracy": 0.9}
                        every[new.key] = replace(new, values=new.values | more)
    writer = Writer(every, tmp_path)
    for suite in SUITES["cpu"].values():
        writer.suite(suite, "cpu")
    overview, _ = writer.summary()
    text = overview.read_text()
    assert len(text.splitlines()) <= 150
    assert "the best method on uniform sets is EM at q = 0.1, 0.3, 0.5 and 0.7" in text
    assert not re.search(r"\(\d/\d\)|\| – ", "".join(line for line in text.splitlines() if line.startswith("| PaPi")))


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.md")), ids=lambda file: file.stem)
def test_no_number_of_a_sentence_is_typed(template: Path) -> None:
    for line in prose(template.read_text()).splitlines():
        if template.stem == "settings" and line.startswith("|"):
            continue  # recorded measurements, and marked as such
        assert not re.search(r"\d", NAMES.sub("", line)), line
        assert not COUNTED.search(line), line


def prose(text: str) -> str:
    """The text of a template without what is filled in, code, comments and the targets of links."""
    text = re.sub(r"<!--.*?-->|\{#.*?#\}", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", without_blocks(text), flags=re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<https?:[^>]*>", "", text)


def test_the_check_of_sentences_finds_numbers() -> None:
    assert NAMES.sub("", prose("CIFAR-100 at q = 0.1, 0.3 and 0.5 (`seed 1`), {{ 3.2 }} points")).count("0") == 0
    assert "84.5" in NAMES.sub("", prose("PaPi has 84.5 % at q = 0.7"))
    assert COUNTED.search(prose("ahead by two and a half points"))


def test_recorded_measurements_are_marked_and_only_in_one_place() -> None:
    assert "recorded measurements" in (DOCS / "results" / "settings.md").read_text()
    for template in TEMPLATES.glob("*.md"):
        typed = [line for line in prose(template.read_text()).splitlines() if line.startswith("|")]
        assert template.stem == "settings" or not re.search(r"\d", "".join(typed)), template.name


def test_every_result_is_in_a_suite(kept: Results) -> None:
    used = {cells.key(config) for suite in SUITES["cpu"].values() for config in suite.cells()}
    assert kept.keys() <= used, "a row that no suite asks for"


def test_every_suite_has_a_page_that_the_overview_lists() -> None:
    assert set(ORDER) == SUITES["cpu"].keys()
    text = (DOCS / "results.md").read_text()
    assert all(f"(results/{name}.md)" in text for name in (*ORDER, "settings"))


def test_every_figure_is_linked_and_well_formed() -> None:
    linked = {
        (file.parent / name).resolve()
        for file in (DOCS / page for page in GENERATED)
        for name in re.findall(r"\(([\w/-]+\.svg)\)", file.read_text())
    }
    assert linked == set((DOCS / "results").resolve().glob("*.svg"))
    for file in linked:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_the_figure_at_a_glance_shows_the_rows(kept: Results) -> None:
    """Its description has every plotted number: a figure that is older than the rows is found."""
    root = ElementTree.parse(DOCS / "results" / f"{glance.NAME}.svg").getroot()
    (told,) = root.iter("{http://purl.org/dc/elements/1.1/}description")
    assert told.text == glance.description(kept)


def test_the_recipe_writes_the_same_rows(kept: Results, tmp_path: Path) -> None:
    """As `python -m recipes.results noise augmentation --tables-only`, elsewhere."""
    suites = [SUITES["cpu"][name] for name in ("noise", "augmentation")]
    for file in (DOCS / "results").glob("*.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert results.publish(suites, "cpu", kept, tmp_path, tmp_path / "docs") == []
    for file in (DOCS / "results").glob("*.jsonl"):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name
    assert (tmp_path / "docs" / "results.md").read_text() == (DOCS / "results.md").read_text()
