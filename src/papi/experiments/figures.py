"""Draws the figures of a suite from its runs: the mean over seeds as a line, the range as a band."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from papi.experiments.results import Result, Results
from papi.experiments.suites import Entry, Figure, Suite, Task
from papi.experiments.tables import outcome
from papi.files.durable import replacing

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

STYLE: "dict[RcKeyType, object]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "papi",  # the same picture gives the same file
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
}
RED, GREEN = "#c0392b", "#27842f"  # colours of the paper: only the linear classifier is right, only the prototypes are
COLOURS = ("#1f5fa8", "#d1701f", "#27842f", "#7b4ea3", "#c0392b", "#5d6770", "#b08a00", "#0f8a8a", "#a83279")
DASHES = ("-", "--", ":", "-.")
PANEL = (3.0, 2.5)  # inches
AXES = {
    "test_accuracy": "test accuracy (%)",
    "prototype_accuracy": "accuracy of prototypes (%)",
    "similarity": "cosine similarity",
    "right_alone": "images in a batch",
    "accuracy_by_compute": "test accuracy (%)",
}

Curve = tuple[np.ndarray, np.ndarray]  # x, and y as (seeds, x)


def draw(figure: Figure, results: Results) -> Drawing | None:
    """Draw one panel per task; for `right_alone`, one per task and entry. None if no run has the curves."""
    panels: list[tuple[str, list[Entry], Task]] = [
        (f"{entry.label}: {task.name}", [entry], task) for task in figure.table.tasks for entry in figure.table.entries
    ]
    if figure.measure != "right_alone":
        panels = [(task.name, list(figure.table.entries), task) for task in figure.table.tasks]
    with mpl.rc_context(STYLE):
        columns = min(4, len(panels))
        rows = -(-len(panels) // columns)
        width = max(columns, 1.5)  # a single panel is too narrow for the legend
        drawing = Drawing(figsize=(PANEL[0] * width, PANEL[1] * rows), layout="constrained")
        drawn = False
        for number, (title, entries, task) in enumerate(panels, 1):
            axes = drawing.add_subplot(rows, columns, number)
            axes.set_title(title, fontsize=9)
            for place, entry in enumerate(entries):
                runs = list(outcome(figure.table, entry, task, results).runs.values())
                drawn |= _draw(axes, figure, entry, runs, place)
            axes.set_xlabel("CPU seconds" if figure.measure == "accuracy_by_compute" else "epoch")
            axes.set_ylabel(AXES[figure.measure])
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            if figure.measure == "accuracy_by_compute":
                _leave_out_the_rise(axes)
        if not drawn:
            return None
        _add_legend(drawing)
    return drawing


def _add_legend(drawing: Drawing) -> None:
    """Add a legend with each line of the panels once, in as many columns as fit."""
    lines = {
        label: line for axes in drawing.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    for columns in range(min(5, len(lines)), 0, -1):
        legend = drawing.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= drawing.bbox.width:
            return
        legend.remove()


def _leave_out_the_rise(axes: Axes) -> None:
    """Start the y axis at the lowest accuracy after a quarter of the compute, to show later differences."""
    lines = [np.asarray(line.get_xydata()) for line in axes.get_lines()]
    if lines:
        quarter = max(points[:, 0].max() for points in lines) / 4
        axes.set_ylim(bottom=min(points[points[:, 0] >= quarter, 1].min() for points in lines))


def _draw(axes: Axes, figure: Figure, entry: Entry, runs: Sequence[Result], place: int) -> bool:
    """Draw the lines of one entry into one panel. Returns whether there were any."""
    colour = COLOURS[place % len(COLOURS)]
    if figure.measure == "similarity":
        styles = [("intra_similarity", f"{entry.label}, within", colour, "-"),
                  ("inter_similarity", f"{entry.label}, between", colour, "--")]  # fmt: skip
    elif figure.measure == "right_alone":
        styles = [("linear_only_right", "only the linear classifier is right", RED, "-"),
                  ("prototype_only_right", "only the prototypes are right", GREEN, "--")]  # fmt: skip
    else:
        name = "prototype_accuracy" if figure.measure == "prototype_accuracy" else "test_accuracy"
        styles = [(name, entry.label, colour, DASHES[place // len(COLOURS)])]
    drawn = False
    for name, label, shade, dash in styles:
        curve = _curve(runs, name, by_compute=figure.measure == "accuracy_by_compute")
        if curve is None:
            continue
        x, values = curve
        values = 100 * values if name.endswith("accuracy") else values
        axes.plot(x, values.mean(0), dash, color=shade, label=label, linewidth=1.6)
        axes.fill_between(x, values.min(0), values.max(0), color=shade, alpha=0.15, linewidth=0)
        drawn = True
    return drawn


def _curve(runs: Sequence[Result], name: str, *, by_compute: bool) -> Curve | None:
    """Values of all runs that have one for every epoch, over epochs or over cumulative CPU time."""
    needed = [name, "cpu_seconds"] if by_compute else [name]
    known = [run for run in runs if all(None not in run.curves.get(each, [None]) for each in needed)]
    if not known:
        return None
    values = np.array([run.curves[name] for run in known], float)
    if by_compute:
        return np.cumsum([run.curves["cpu_seconds"] for run in known], 1).mean(0), values
    return np.arange(1, values.shape[1] + 1), values


def save(drawing: Drawing, path: Path, description: str | None = None) -> list[Path]:
    """Write `path`.svg and `path`.png; both contain the description, if given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {} if description is None else {"Description": description}
    vector, pixels = path.with_suffix(".svg"), path.with_suffix(".png")
    with mpl.rc_context(STYLE):
        with replacing(vector) as stream:
            drawing.savefig(stream, format="svg", metadata={"Date": None} | told)
        with replacing(pixels) as stream:
            drawing.savefig(stream, format="png", dpi=130, metadata={"Software": None} | told)
    return [vector, pixels]


def save_all(suite: Suite, results: Results, folder: Path) -> list[tuple[Figure, Path]]:
    """Write every figure of a suite that has curves into a folder. Returns each with its SVG file."""
    saved = []
    for figure in suite.figures:
        drawing = draw(figure, results)
        if drawing is not None:
            vector, _ = save(drawing, folder / f"{suite.name}-{figure.name}.svg")
            saved.append((figure, vector))
    return saved
