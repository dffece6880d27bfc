"""What stands on the page."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np

from papi.report import comparison_page, read_run, run_page
from papi.report.tables import choices
from papi.runs.folder import RunFolder
from papi.runs.schema import Sets
from run_folders import AWKWARD, summary_of

Make = Callable[..., RunFolder]


class Page(HTMLParser):
    """Collects the tags, ids and headings of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_every_section_of_a_run(make_run: Make) -> None:
    page = run_page(read_run(make_run().path))
    for text in (
        "Test accuracy", "80.0%", "90.0%", "Resolved labels", "Images to review", "Download decisions",
        "--fix decisions.csv",
        "plot-loss", "plot-accuracy", "plot-resolved", "plot-confidence", "plot-sharper", "Confused classes",
        "plot-matrix", "plot-map", "plot-similarity", "plot-trust", "expected calibration error",
        "Choosing an epoch without true labels", "papi train --data", "numpy 2", "candidates.flip_rate",
    ):  # fmt: skip
        assert text in page, text
    assert "No true labels" not in page


def test_the_rule_that_picked_the_epoch_is_marked(make_run: Make) -> None:
    folder = make_run()
    rates = (0.5, 0.9, 0.7)
    folder.write_rows([replace(row, covering_rate=r) for row, r in zip(folder.read_rows(), rates, strict=True)])
    record = folder.begun()
    folder.write_record(replace(record, config=record.config | {"select": "covering-rate"}))
    rules = {choice.rule: (choice.epoch, choice.value) for choice in choices(read_run(folder.path))}
    marked = [rule for rule in rules if rule.endswith("(used on this page)")]
    assert len(marked) == 1
    assert marked[0].startswith("Covering rate")
    assert rules[marked[0]] == (2, "90.0%")


def test_without_true_labels_only_what_can_be_known(make_run: Make) -> None:
    page = run_page(read_run(make_run(truth=False).path))
    assert "There are no true labels for these images" in page
    assert "Close decisions" in page
    assert "plot-trust" not in page
    places = {attrs["id"] for tag, attrs in Page(page).tags if tag == "section"}
    assert places == {"look", "result", "labels", "standins", "learning", "sure", "mistakes", "run"}
    links = {attrs["href"] for tag, attrs in Page(page).tags if tag == "a" and attrs["href"] != "#main"}
    assert links == {f"#{place}" for place in places}
    for word in ("Test accuracy", "Labels resolved", "✓ right", "✗ wrong"):
        assert word not in page


def test_nothing_is_fetched_and_ids_are_unique(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b", method="proden", seed=1)
    for text in (run_page(read_run(a.path)), comparison_page([read_run(a.path), read_run(b.path)])):
        page = Page(text)
        ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        for tag, attrs in page.tags:
            for name in ("src", "href", "xlink:href", "action", "data", "poster"):
                assert re.match(r"#|data:|$", attrs.get(name) or ""), (tag, attrs)
        assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", text)
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert all(attrs.get("alt") is not None for tag, attrs in page.tags if tag == "img")


def test_awkward_names_are_text(make_run: Make) -> None:
    page = run_page(read_run(make_run("<b>run & more", names=AWKWARD).path))
    assert "<script>alert" not in page
    assert "&lt;b&gt;run &amp; more" in page
    assert "fox 🦊👩‍🔬" in page
    assert "שלום עולם" in page
    assert [tag for tag, _ in Page(page).tags].count("script") == 2


def test_the_same_run_gives_the_same_page(make_run: Make) -> None:
    path = make_run().path
    assert run_page(read_run(path)) == run_page(read_run(path))


def test_groups_of_a_tree_are_headings(make_run: Make) -> None:
    run = read_run(make_run().path)
    assert run.dataset is not None
    groups = tuple("<Roses>" if k % 2 else "Lilies" for k in range(len(run.class_names)))
    run.dataset = replace(run.dataset, levels=(groups,))
    page = run_page(run)
    headings = re.findall(r'<li class="group"><bdi>(.*?)</bdi>', page)
    assert headings == ["Lilies", "&lt;Roses&gt;"]
    assert "Lilies, &lt;Roses&gt;" in page


def test_many_classes_stay_readable(make_run: Make) -> None:
    names = tuple(f"species {k}" for k in range(40))
    page = run_page(read_run(make_run(names=names, images=200, tests=200).path))
    assert "Only the 24 most confused classes are shown" in page
    assert "Grey points belong to the remaining classes" in page
    assert re.search(r"and \d+ more", page)


def test_a_comparison_marks_the_best_and_shows_where_they_differ(make_run: Make) -> None:
    a = make_run("good", wrong=0.05)
    b = make_run("bad", method="proden", seed=1, wrong=0.5)
    b.write_summary(replace(summary_of(b), test_accuracy=0.6))
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert re.search(r'class="best">80.0%', page)
    assert not re.search(r'class="best">60.0%', page)
    assert re.search(r"They resolve \d+ of 120 training images differently", page)
    assert "good is right on" in page
    assert "plot-all-test-accuracy" in page
    assert "plot-compute" in page
    assert "No method has runs at two flip rates" in page


def test_accuracy_against_flip_rate_needs_two(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b")
    b.write_summary(replace(summary_of(b), flip_rate=0.1, test_accuracy=0.9))
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert "plot-flip" in page
    assert "The runs have 2 tasks" in page


def test_runs_with_other_candidates_are_not_set_against_each_other(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b")
    candidates = ~np.eye(4, dtype=bool)[np.arange(120) % 4]
    b.write_sets(Sets(candidates=candidates))
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert "No two finished runs have the same candidates" in page


def test_problems_of_every_run_are_on_the_comparison(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b")
    b.summary_file.unlink()
    a.metrics_file.write_text("{")
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert "ends in the middle of a line" in page
    assert "This run is unfinished" in page
    assert ">unfinished<" in page


def test_where_calibration_was_measured(make_run: Make) -> None:
    folder = make_run()
    note = "measured on the training images"
    assert note not in run_page(read_run(folder.path))
    folder.write_arrays(replace(folder.read_arrays(), test_probabilities=None))
    assert note in run_page(read_run(folder.path))


def test_characters_that_no_page_can_hold(make_run: Make, tmp_path: Path) -> None:
    """Controls, and the surrogates that stand for bytes of a name that is no UTF-8."""
    folder = make_run("whole")
    record = folder.begun()
    folder.write_record(replace(record, versions={"bell\x07": "\udcff alone"}))
    moved = folder.path.rename(tmp_path / "run \udcff")
    page = run_page(read_run(moved))
    assert page.encode()
    assert "run \ufffd" in page
    assert "bell\ufffd \ufffd alone" in page


def test_a_page_of_one_photograph_with_colours(make_run: Make) -> None:
    page = run_page(read_run(make_run(images=8, tests=4, side=80, channels=3).path))
    assert "data:image/jpeg" in page
