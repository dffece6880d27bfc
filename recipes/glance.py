"""The figure of docs/results.md: accuracy against ambiguity, and accuracy against compute, for every method.

Each dot is the mean of finished runs of one length. The file contains the plotted numbers as its description, for
screen readers and for the test that compares them with the rows.
"""

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import NullLocator

from papi.experiments import SUITES
from papi.experiments.compute import units
from papi.experiments.cpu import BUDGET, HARD, RATES
from papi.experiments.figures import STYLE, save
from papi.experiments.paper import PAPI
from papi.experiments.results import Results
from papi.experiments.suites import Entry, Table, Task
from papi.experiments.tables import outcome
from recipes.overview import entries, named

NAME = "at-a-glance"
HARDEST = HARD[-1]
LOWEST = 74.0  # lower accuracies are not drawn: one failing method would flatten all others
_SUITES = ("uniform", "budget", "forms")
# Okabe and Ito's colours, darkened where they are faint on white. Labels, markers and dashes also distinguish lines.
_BLUE, _BLACK = "#005f9e", "#1a1a1a"
_COLOURS = ("#c44e00", "#00795a", "#a4437c", "#7a5c00", "#5f5f5f", "#3d7ea6", "#8a3b2a")
_DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_MARKERS = "osD^vPX<>*"
_GAP = 0.05  # between labels, as a share of a panel's height

Line = list[tuple[float, float]]  # x and mean accuracy in %, sorted by x
Lines = dict[Entry, Line]


def by_ambiguity(results: Results) -> Lines:
    """Accuracy at each flip rate with equal compute."""
    table = Table("equal compute", entries(), RATES, units=BUDGET)
    return _lines(results, ((e, task.flip_rate, table, task) for e in table.entries for task in table.tasks))


def by_compute(results: Results) -> Lines:
    """Accuracy at the highest flip rate for runs of different lengths, by encoder units per image."""
    tables = [table for name in _SUITES for table in SUITES["cpu"][name].tables if HARDEST in table.tasks]
    return _lines(
        results, ((e, _spent(table, e), table, HARDEST) for e in entries() for table in tables if e in table.entries)
    )


def _spent(table: Table, entry: Entry) -> float:
    return float((table.length(entry) or 0) * units(entry.method, entry.settings))


def _lines(results: Results, points: Iterable[tuple[Entry, float, Table, Task]]) -> Lines:
    """Only the points whose runs are all finished."""
    lines: dict[Entry, dict[float, float]] = {}
    for entry, x, table, task in points:
        cell = outcome(table, entry, task, results)
        if cell.runs and cell.complete:
            lines.setdefault(entry, {})[x] = cell.mean
    return {entry: sorted(line.items()) for entry, line in lines.items()}


def description(results: Results) -> str:
    """The content of the figure as text."""
    told = []
    for title, unit, lines in (
        ("Equal compute, accuracy in % at each q", "q = ", by_ambiguity(results)),
        (f"{HARDEST.label}, accuracy in % after so many encoder units", "", by_compute(results)),
    ):
        listed = [
            f"{named(entry).label}: {', '.join(f'{unit}{x:g} {y:.2f}' for x, y in line)}"
            for entry, line in lines.items()
        ]
        told.append(f"{title}. {'; '.join(listed)}.")
    return " ".join(told)


def hidden(results: Results) -> list[str]:
    """The methods whose final accuracy is below the drawn range."""
    lines = [*by_ambiguity(results).items(), *by_compute(results).items()]
    return list(dict.fromkeys(named(entry).label for entry, line in lines if line[-1][1] < LOWEST))


def draw(results: Results) -> Drawing:
    """The two panels."""
    with mpl.rc_context(STYLE):
        drawing = Drawing(figsize=(7.8, 4.2), layout="constrained")
        left, right = drawing.subplots(1, 2)
        rates, spent = by_ambiguity(results), by_compute(results)
        _panel(left, rates)
        left.set_title("Against ambiguity, with equal compute", fontsize=10, loc="left")
        left.set_xlabel("q: how likely a wrong label is a candidate")
        left.set_xticks([task.flip_rate for task in RATES])
        left.set_xlim(0.08, 1.1)
        right.set_xscale("log")
        _panel(right, spent)
        right.set_title(f"Against compute, at {HARDEST.label}", fontsize=10, loc="left")
        right.set_xlabel("encoder units for each image")
        ticks = sorted({x for line in spent.values() for x, _ in line if x in (36, 72) or x % BUDGET == 0})
        right.set_xticks(ticks, [f"{x:g}" for x in ticks])
        right.xaxis.set_minor_locator(NullLocator())
        first, last = min(ticks, default=1), max(ticks, default=1)
        right.set_xlim(first * 0.9, last * (last / first) ** 0.6 * 1.1)
        for axes in (left, right):
            axes.set_ylabel("test accuracy (%)")
    return drawing


def _panel(axes: Axes, lines: Lines) -> None:
    """Draw lines, each with its label at its end. Overlapping labels are moved apart."""
    highest = max((y for line in lines.values() for _, y in line), default=LOWEST)
    axes.set_ylim(LOWEST, highest + 1)
    ends: dict[float, list[tuple[float, str, str]]] = {}
    others = [entry for entry in entries() if entry.method != PAPI.method and not entry.ceiling]
    forms = [entry for entry in entries() if entry.method == PAPI.method]
    for entry, line in lines.items():
        colour, dash, marker = _style(entry, forms, others)
        width = 2.4 if entry in forms else 1.3
        last, height = line[-1]
        if height < LOWEST:
            continue
        x, y = zip(*line, strict=True)
        axes.plot(x, y, linestyle=dash, marker=marker, color=colour, linewidth=width, markersize=4.5)
        # Lines that end at nearly the same x put their labels in one column, so that labels do not overlap.
        near = next((other for other in ends if abs(other - last) < 0.05 * other), last)
        ends.setdefault(near, []).append((height, _short(entry), colour))
    for end, labels in ends.items():
        places = apart(sorted(labels), highest + 1 - LOWEST)
        for (_, label, colour), place in zip(sorted(labels), places, strict=True):
            axes.annotate(
                label, (end, place), xytext=(7, 0), textcoords="offset points", va="center", color=colour, fontsize=8.5,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
            )  # fmt: skip


def _short(entry: Entry) -> str:
    return named(entry).label.replace(", set_prior=auto", " + sets")


def _style(entry: Entry, forms: list[Entry], others: list[Entry]) -> tuple[str, str | tuple[int, tuple[int, ...]], str]:
    if entry.ceiling:
        return _BLACK, ":", ""
    if entry in forms:
        place = forms.index(entry)
        return _BLUE, _DASHES[place % len(_DASHES)], _MARKERS[place % len(_MARKERS)]
    place = others.index(entry)
    return _COLOURS[place % len(_COLOURS)], _DASHES[place // len(_COLOURS)], _MARKERS[place % len(_MARKERS)]


def apart(labels: list[tuple[float, str, str]], height: float) -> list[float]:
    """Heights of labels, lowest first, at least one line apart and as close as possible to their lines."""
    gap = _GAP * height
    places = [y for y, *_ in labels]
    for _ in range(100):
        for low in range(len(places) - 1):
            lacking = gap - (places[low + 1] - places[low])
            if lacking > 1e-9:
                places[low] -= lacking / 2
                places[low + 1] += lacking / 2
    return places


def write(results: Results, folder: Path) -> str:
    """Save the figure as SVG and PNG; returns the name of the SVG file."""
    vector, _ = save(draw(results), folder / NAME, description=description(results))
    return vector.name
