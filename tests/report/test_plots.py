"""Charts as SVG: well formed, with the page's colours, ids of their own and names as text."""

import re
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.report import plots
from papi.report.plots import COLOURS, NAMED, Line, shortened
from run_folders import AWKWARD


def parsed(svg: str) -> ElementTree.Element:
    """The element, with the one prefix that HTML knows by itself."""
    return ElementTree.fromstring(str(svg).replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))


def texts(svg: str) -> list[str]:
    return [(element.text or "") for element in parsed(svg).iter() if element.tag.endswith("text")]


def curves(count: int, points: int = 4) -> list[Line]:
    return [Line(f"curve {n}", list(range(points)), [n + k / 10 for k in range(points)], n) for n in range(count)]


DRAWINGS = {
    "lines": plots.lines("k", curves(3), x="epoch", y="loss"),
    "one line": plots.lines("k", curves(1, 40), x="epoch", y="loss", percent=True),
    "spread": plots.lines("k", [Line("a", [0.1, 0.5], [0.9, 0.7], 0, [0.01, 0.0])], x="x", y="y", whole=False),
    "points": plots.points("k", [Line("a", [1], [0.5], 0), Line("a", [2], [0.6], 0)], x="x", y="y"),
    "bars": plots.bars("k", np.linspace(0, 1, 4), np.ones(3) / 3, np.eye(3)[0], ("before", "after"), "x"),
    "reliability": plots.reliability("k", np.array([0.5, 0.9]), np.array([0.6, 0.7]), np.array([3, 1])),
    "matrix": plots.matrix("k", np.eye(3), ["a", "b", "c"], rows="true", columns="taken for"),
    "plane": plots.plane(
        "k", np.random.default_rng(0).random((6, 2)), np.array([0, 0, 1, 1, -1, -1]), ["a", "b"],
        np.array([[0.5, 0.5], [0.1, 0.1]]), np.array([0, -1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("svg", DRAWINGS.values(), ids=DRAWINGS)
def test_every_chart_fits_into_a_page(svg: str) -> None:
    root = parsed(svg)
    assert root.tag.endswith("svg")
    assert "width" not in root.attrib  # the style sheet decides
    assert (root.attrib["class"], root.attrib["aria-hidden"]) == ("plot-k", "true")
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    assert all(name.startswith("k-") for name in ids)
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]*)", svg)) <= set(ids)
    assert not [stand_in for stand_in in NAMED if stand_in in svg]
    assert "font-family" not in svg
    assert "<style" not in svg
    assert "<metadata" not in svg


def test_drawing_leaves_the_style_of_others_alone() -> None:
    before = dict(mpl.rcParams)
    plots.lines("k", curves(1), x="x", y="y")
    assert dict(mpl.rcParams) == before


def test_the_same_chart_twice_is_the_same_text() -> None:
    drawn = [plots.lines("k", curves(3), x="x", y="y") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_keys_keep_charts_apart() -> None:
    a, b = (plots.lines(key, curves(2), x="x", y="y") for key in ("one", "two"))
    assert a != b
    assert a.replace("one-", "two-").replace("plot-one", "plot-two") == b


def test_names_are_text_and_never_formulas() -> None:
    names = (*AWKWARD, "$\\frac{$", "#010101", "a_b^c")
    svg = plots.matrix("k", np.eye(len(names)), names, rows="$x$", columns="y")
    said = texts(svg)
    assert {shortened(name, 12) for name in names} <= set(said)
    assert "$x$" in said
    assert "<script" not in svg


def test_a_legend_only_where_there_is_a_choice() -> None:
    assert "curve 0" not in texts(plots.lines("k", curves(1), x="x", y="y"))
    assert {"curve 0", "curve 1"} <= set(texts(plots.lines("k", curves(2), x="x", y="y")))


def test_many_curves_differ_by_colour_or_dashes() -> None:
    svg = plots.lines("k", curves(COLOURS + 2), x="x", y="y")
    looks = {
        (re.findall(r"stroke: (var\(--c\d+\))", style)[0], "".join(re.findall(r"stroke-dasharray: [^;]*", style)))
        for style in re.findall(r'style="(fill: none;[^"]*stroke: var\(--c\d+\)[^"]*)"', svg)
    }
    assert len(looks) == COLOURS + 2


def test_chosen_values_are_the_marks_of_the_axis() -> None:
    line = Line("a", [0.1, 0.3, 0.7], [0.9, 0.8, 0.5])
    said = texts(plots.lines("k", [line], x="flip rate", y="accuracy", percent=True, whole=False))
    assert {"0.1", "0.3", "0.7", "flip rate", "accuracy"} <= set(said)
    assert any(text.endswith("%") for text in said)


def test_the_same_label_is_named_once() -> None:
    assert texts(DRAWINGS["points"]).count("a") == 1


def test_shares_of_a_matrix_are_written_where_there_is_room() -> None:
    small = plots.matrix("k", np.full((2, 2), 0.25), ["a", "b"], rows="r", columns="c")
    assert texts(small).count("25") == 4
    names = [str(n) for n in range(13)]
    large = plots.matrix("k", np.full((13, 13), 0.25), names, rows="r", columns="c")
    assert "25" not in texts(large)


def test_one_class_alone_is_a_matrix() -> None:
    assert "100" in texts(plots.matrix("k", np.ones((1, 1)), ["only"], rows="r", columns="c"))


@given(st.text(max_size=40), st.integers(2, 30))
def test_shortened_names_fit_and_have_no_controls(name: str, length: int) -> None:
    short = shortened(name, length)
    assert len(short) <= length
    assert all(character >= " " for character in short)
    if len(name) <= length and all(character >= " " for character in name):
        assert short == name


def test_colours_begin_again() -> None:
    assert plots.colour(0) == plots.colour(COLOURS)
    assert len({plots.colour(n) for n in range(COLOURS)}) == COLOURS
