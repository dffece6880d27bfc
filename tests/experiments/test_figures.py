"""Figures from results with known numbers."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from toy_results import ENTRIES, EPOCHS, SUITE, TASK, result, results

from papi.experiments import figures
from papi.experiments.paper import DPLL, PAPI, PRODEN
from papi.experiments.suites import Figure, Measure


@pytest.mark.parametrize("measure", ["test_accuracy", "similarity", "right_alone", "accuracy_by_compute"])
def test_figures_as_svg_and_png(measure: Measure, tmp_path: Path) -> None:
    figure = Figure("curves", "Curves", measure, replace(EPOCHS, entries=(PAPI, DPLL)))
    drawing = figures.draw(figure, results())
    assert drawing is not None
    vector, pixels = figures.save(drawing, tmp_path / "curves.svg")
    assert ElementTree.parse(vector).getroot().tag.endswith("svg")
    assert imread(pixels).std() > 0
    panels = 2 if measure == "right_alone" else 1
    assert len(drawing.axes) == panels
    lines = {"similarity": 4, "right_alone": 2}.get(measure, 2)
    assert len(drawing.axes[0].lines) == lines
    if measure == "accuracy_by_compute":
        x, y = drawing.axes[0].lines[0].get_data()
        np.testing.assert_allclose(x, [15.7, 31.4])
        np.testing.assert_allclose(y, [41.5, 83.0])


def test_the_legend_names_every_line_and_fits() -> None:
    second = replace(TASK, label="q = 0.7", flip_rate=0.7)
    made = [result(EPOCHS, PRODEN, 0, 0.7), result(EPOCHS, DPLL, 0, 0.8), result(EPOCHS, PAPI, 0, 0.9, task=second)]
    table = replace(EPOCHS, entries=(PAPI, DPLL, PRODEN))
    for tasks, names in (((TASK,), {"DPLL", "PRODEN"}), ((TASK, second), {"DPLL", "PRODEN", "PaPi"})):
        figure = Figure("curves", "Curves", "test_accuracy", replace(table, tasks=tasks))
        drawing = figures.draw(figure, {each.key: each for each in made})
        assert drawing is not None
        (legend,) = drawing.legends
        assert {text.get_text() for text in legend.get_texts()} == names
        assert legend.get_window_extent().width <= drawing.bbox.width


def test_a_figure_without_curves_is_left_out() -> None:
    figure = Figure("curves", "Curves", "prototype_accuracy", EPOCHS)
    assert figures.draw(figure, results()) is None


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    """Otherwise every new page would change every picture in the repository."""
    figure = Figure("curves", "Curves", "test_accuracy", EPOCHS)
    for name in ("first", "second"):
        drawing = figures.draw(figure, results())
        assert drawing is not None
        figures.save(drawing, tmp_path / name / "curves")
    for suffix in (".svg", ".png"):
        first, second = (tmp_path / name / f"curves{suffix}" for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


def test_a_band_shows_the_range_over_seeds() -> None:
    figure = Figure("curves", "Curves", "test_accuracy", replace(EPOCHS, entries=(PAPI,)))
    drawing = figures.draw(figure, results())
    assert drawing is not None
    (axes,) = drawing.axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xdata(), [1, 2])
    np.testing.assert_allclose(line.get_ydata(), [41.5, 83.0])
    (band,) = axes.collections
    low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()
    np.testing.assert_allclose([low, high], [40.0, 86.0])


def test_runs_that_lack_a_value_are_not_drawn() -> None:
    found = results()
    broken = next(each for each in found.values() if each.config.method == "papi" and each.config.seed == 0)
    found[broken.key] = replace(broken, curves=broken.curves | {"test_accuracy": [None, 0.8]})
    figure = Figure("curves", "Curves", "test_accuracy", replace(EPOCHS, entries=(PAPI,)))
    drawing = figures.draw(figure, found)
    assert drawing is not None
    np.testing.assert_allclose(drawing.axes[0].lines[0].get_ydata()[-1], (83 + 86) / 2)


def test_all_figures_of_a_suite_that_have_curves(tmp_path: Path) -> None:
    drawn = Figure("curves", "Curves", "test_accuracy", EPOCHS)
    empty = Figure("prototypes", "Prototypes", "prototype_accuracy", EPOCHS)
    ((figure, file),) = figures.save_all(replace(SUITE, figures=(drawn, empty)), results(), tmp_path / "new" / "place")
    assert figure == drawn
    assert sorted(path.name for path in file.parent.iterdir()) == ["toy-curves.png", "toy-curves.svg"]
    assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_accuracy_by_compute_begins_after_the_rise() -> None:
    """The first epochs, in which all methods rise, would press the rest together."""
    table = replace(EPOCHS, entries=(PAPI, DPLL), epochs=8)
    figure = Figure("compute", "Compute", "accuracy_by_compute", table)
    drawing = figures.draw(figure, results(table))
    assert drawing is not None
    bottom, top = drawing.axes[0].get_ylim()
    final = [line.get_ydata()[-1] for line in drawing.axes[0].lines]
    first = [line.get_ydata()[0] for line in drawing.axes[0].lines]
    assert max(first) < bottom < min(final)
    assert max(final) <= top


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9])
def test_every_task_has_a_panel(count: int) -> None:
    tasks = tuple(replace(TASK, label=f"q = {number / 10:g}", flip_rate=number / 10) for number in range(count))
    table = replace(EPOCHS, tasks=tasks, seeds=(0,), entries=ENTRIES[1:])
    made = [result(table, entry, 0, 0.8, task) for task in tasks for entry in ENTRIES[1:]]
    drawing = figures.draw(Figure("many", "Many", "test_accuracy", table), {each.key: each for each in made})
    assert drawing is not None
    assert [axes.get_title() for axes in drawing.axes] == [task.name for task in tasks]
    assert all(len(axes.lines) == len(ENTRIES) - 1 for axes in drawing.axes)
