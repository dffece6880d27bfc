"""What stands on the page."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np

from papi.report import comparison_page, read_run, run_page
from papi.report.comparison import accuracy_by_flip_rate, standings
from papi.report.tables import choices
from papi.runs.folder import RunFolder
from run_folders import AWKWARD

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
        "Test accuracy", "80.0%", "90.0%", "From sure to doubtful", "Worth a second look", "Download decisions",
        "--fix decisions.csv",
        "plot-loss", "plot-accuracy", "plot-resolved", "plot-confidence", "plot-sharper", "What it mixes up",
        "plot-matrix", "plot-map", "plot-similarity", "plot-trust", "expected calibration error",
        "Choosing an epoch without true labels", "papi train --data", "numpy 2", "candidates.flip_rate",
    ):  # fmt: skip
        assert text in page, text
    assert "No true labels" not in page


def test_the_rule_that_picked_the_epoch_is_marked(make_run: Make) -> None:
    folder = make_run()
    judged = [row | {"covering_rate": rate} for row, rate in zip(folder.read_rows(), (0.5, 0.9, 0.7), strict=True)]
    folder.write_rows(judged)
    record = folder.read_config()
    assert record is not None
    folder.write_config(record | {"config": record["config"] | {"select": "covering-rate"}})
    rules = {choice.rule: (choice.epoch, choice.value) for choice in choices(read_run(folder.path))}
    marked = [rule for rule in rules if rule.endswith("(what this page reports)")]
    assert len(marked) == 1
    assert marked[0].startswith("Covering rate")
    assert rules[marked[0]] == (2, "90.0%")


def test_without_true_labels_only_what_can_be_known(make_run: Make) -> None:
    page = run_page(read_run(make_run(truth=False).path))
    assert "No true labels are known for these images" in page
    assert "What it hesitates between" in page
    assert "plot-trust" not in page
    assert "can only be measured with true labels" in page
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


def test_many_classes_stay_readable(make_run: Make) -> None:
    names = tuple(f"species {k}" for k in range(40))
    page = run_page(read_run(make_run(names=names, images=200, tests=200).path))
    assert "Only the 12 classes that are mixed up most are drawn" in page
    assert "Grey points belong to classes" in page
    assert re.search(r"and \d+ more", page)


def test_a_comparison_marks_the_best_and_shows_where_they_differ(make_run: Make) -> None:
    a = make_run("good", wrong=0.05)
    b = make_run("bad", method="proden", seed=1, wrong=0.5)
    b.write_summary((b.read_summary() or {}) | {"test_accuracy": 0.6})
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert re.search(r'class="best">80.0%', page)
    assert not re.search(r'class="best">60.0%', page)
    assert re.search(r"They resolve \d+ of 120 training images differently", page)
    assert "good is right on" in page
    assert "plot-all-test-accuracy" in page
    assert "plot-compute" in page
    assert "No method was run at two flip rates" in page


def test_accuracy_against_flip_rate_needs_two(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b")
    b.write_summary((b.read_summary() or {}) | {"flip_rate": 0.1, "test_accuracy": 0.9})
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert "plot-flip" in page
    assert "They were given 2 tasks" in page


def test_sets_without_a_flip_rate_are_not_on_that_curve(make_run: Make) -> None:
    runs = [make_run(name) for name in "abc"]
    for run, rate, accuracy in zip(runs, (0.5, 0.1, 0.5), (0.8, 0.9, 0.4), strict=True):
        run.write_summary((run.read_summary() or {}) | {"flip_rate": rate, "test_accuracy": accuracy})
    record = runs[2].read_config() or {}
    record["config"]["candidates"]["kind"] = "instance-dependent"
    runs[2].write_config(record)
    (curve,) = accuracy_by_flip_rate(standings([read_run(run.path) for run in runs])[1])
    assert (curve.x, curve.y) == ([0.1, 0.5], [0.9, 0.8])


def test_runs_with_other_candidates_are_not_set_against_each_other(make_run: Make) -> None:
    a, b = make_run("a"), make_run("b")
    candidates = ~np.eye(4, dtype=bool)[np.arange(120) % 4]
    b.write_arrays(b.candidates_file, {"candidates": candidates})
    page = comparison_page([read_run(a.path), read_run(b.path)])
    assert "No two of these runs were given the same candidates" in page
