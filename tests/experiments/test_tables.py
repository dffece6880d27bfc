"""Tables and figures from results with known numbers."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from papi.experiments import figures, page, rendering, tables
from papi.experiments.paper import CEILING, DPLL, PAPI, PRODEN
from papi.experiments.rows import Result, Results
from papi.experiments.suites import Figure, Measure, Published, Suite, Table, Task
from papi.setup.settings import complete

TASK = Task("fashion-mini", "fashion-mini", "q = 0.5")
ENTRIES = (CEILING, PAPI, DPLL, PRODEN)
EPOCHS = Table("equal epochs", ENTRIES, (TASK,), epochs=2)
COMPUTE = Table("equal compute", ENTRIES, (TASK,), units=20)
SUITE = Suite("toy", "A toy", (EPOCHS, COMPUTE))
ACCURACIES = {
    CEILING: (0.90, 0.92, 0.91),
    PAPI: (0.80, 0.83, 0.86),
    DPLL: (0.79, 0.84, 0.82),
    PRODEN: (0.70, 0.70, 0.70),
}


def result(table: Table, entry: tables.Entry, seed: int, accuracy: float, task: Task = TASK) -> Result:
    config = complete(table.config(entry, task, seed))
    values = {"test_accuracy": accuracy, "training_images": 10_000, "cpu_seconds": 31.4, "seconds": 40.0}
    epochs = config.epochs or 0
    curves: dict[str, list[float | None]] = {
        "test_accuracy": [accuracy * (n + 1) / epochs for n in range(epochs)],
        "cpu_seconds": [31.4 / epochs] * epochs,
        "intra_similarity": [0.5] * epochs,
        "inter_similarity": [0.1] * epochs,
        "linear_only_right": [3.0] * epochs,
        "prototype_only_right": [2.0] * epochs,
    }
    return Result(config, values, curves, {"versions": {"torch": "2.13.0"}, "threads": 1, "date": "2026-01-01"})


def results(table: Table = EPOCHS) -> Results:
    made = [result(table, entry, seed, values[seed]) for entry, values in ACCURACIES.items() for seed in range(3)]
    return {each.key: each for each in made}


def by_label(sheet: tables.Sheet) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in sheet.rows}


def test_means_and_differences() -> None:
    (sheet,) = tables.overviews(EPOCHS, results())
    rows = by_label(sheet)
    slow = [80.0, 83.0, 86.0]
    mean = sum(slow) / 3
    std = (sum((value - mean) ** 2 for value in slow) / 3) ** 0.5
    assert rows["PaPi"] == (f"{mean:.2f} ± {std:.2f}",) == ("83.00 ± 2.45",)
    assert rows["Best minus runner-up, by seed"] == ("+1.00, -1.00, +4.00 (PaPi − DPLL)",)
    assert rows["Best minus ceiling"] == ("-8.00",)
    assert sheet.bold == {(1, 1)}  # PaPi: the ceiling takes no part


def test_details_stand_side_by_side() -> None:
    (sheet,) = tables.details(SUITE, results())
    rows = by_label(sheet)
    assert sheet.header[:2] == ("Method", "Units")
    assert rows["PaPi"] == (
        "10", "2", "83.00 ± 2.45", "+1.00, -1.00, +4.00", "-8.00", "31",
        "2", "83.00 ± 2.45", "–", "–", "31",
    )  # fmt: skip
    assert rows["PRODEN"][:6] == ("3", "2", "70.00 ± 0.00", "-10.00, -13.00, -16.00", "-21.00", "31")
    assert rows["PRODEN"][6:] == ("7", "–", "–", "–", "–")  # 20 units are nearest to seven epochs of three


def test_times_of_several_kinds_of_processors_are_told_apart() -> None:
    found = results()
    (slow,) = [each for each in found.values() if each.config.method == "papi" and each.config.seed == 2]
    made = slow.made | {"versions": {"processor": "old"}}
    found[slow.key] = replace(slow, values=slow.values | {"cpu_seconds": 99.0}, made=made)
    rows = by_label(tables.details(SUITE, found)[0])
    assert rows["PaPi"][5] == "99 (old), 31 (unknown)"
    assert rows["PRODEN"][5] == "31 (unknown)"


def test_unfinished_cells_are_marked_and_nobody_wins_before_all_have_run() -> None:
    some = {key: each for key, each in results().items() if each.config.method != "dpll" or each.config.seed == 1}
    (sheet,) = tables.overviews(EPOCHS, some)
    assert by_label(sheet)["DPLL"] == ("84.00 (1/3)",)
    none = {key: each for key, each in some.items() if each.config.method != "dpll"}
    (sheet,) = tables.overviews(EPOCHS, none)
    assert by_label(sheet)["DPLL"] == ("–",)
    assert sheet.bold == frozenset()
    assert by_label(sheet)["Best minus runner-up, by seed"] == ("–",)


def test_the_papers_number_and_the_difference_stand_beside() -> None:
    table = replace(EPOCHS, published={("PaPi", "fashion-mini", "q = 0.5"): Published(82.5, 0.1)})
    (sheet,) = tables.overviews(table, results())
    assert by_label(sheet)["PaPi"] == ("83.00 ± 2.45 (paper 82.50 ± 0.10, +0.50)",)
    (sheet,) = tables.overviews(table, {})
    assert by_label(sheet)["PaPi"] == ("– (paper 82.50 ± 0.10)",)


def test_formats_say_the_same() -> None:
    (sheet,) = tables.overviews(EPOCHS, results())
    assert "| PaPi | **83.00 ± 2.45** |" in rendering.markdown(sheet)
    assert r"PaPi & \textbf{83.00 $\pm$ 2.45} \\" in rendering.latex(sheet)
    assert "last epoch" in rendering.latex(sheet)
    rows = list(csv.DictReader(io.StringIO(rendering.comma_separated(SUITE, results()))))
    (papi,) = [row for row in rows if row["method"] == "PaPi" and row["table"] == "equal epochs"]
    assert (papi["mean"], papi["std"], papi["seeds"], papi["wanted"]) == ("83.00", "2.45", "3", "3")
    assert len(rows) == 8


def test_costs() -> None:
    table = replace(EPOCHS, entries=(PAPI,), seeds=(0,))
    sheets = tables.sheets(Suite("cost", "Cost", (table,), costs=True), results(), detailed=True)
    steps = 2 * -(-10_000 // 64)
    assert sheets[1].rows == (("PaPi", f"{31.4 / steps:.4f}"),)
    assert sheets[2].rows == (("PaPi", "–"),)  # these runs did not measure their memory


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


def test_the_page_keeps_what_people_wrote(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    begin, end = page.marks(SUITE, "cpu")
    file.write_text(f"# Results\n\nBefore.\n\n{begin}\nold\n{end}\n\nAfter.\n")
    suite = replace(SUITE, figures=(Figure("curves", "Curves", "test_accuracy", EPOCHS),))
    page.write(file, suite, "cpu", results())
    text = file.read_text()
    assert text.startswith("# Results\n\nBefore.\n\n")
    assert text.endswith(f"{end}\n\nAfter.\n")
    assert "\nold\n" not in text
    assert "| PaPi | **83.00 ± 2.45** |" in text
    assert "of the last epoch" in text
    assert "(results/toy-curves.svg)" in text
    assert (tmp_path / "results" / "toy-curves.svg").exists()
    page.write(file, suite, "cpu", results())
    assert file.read_text() == text


def test_a_suite_without_marks_comes_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    file.write_text("# Results\n\nMine.\n")
    page.write(file, SUITE, "cpu", results())
    assert file.read_text().startswith("# Results\n\nMine.\n\n## A toy\n\n<!-- papi bench toy --scale cpu: begin -->")
