"""Draws charts as inline SVG. The style sheet of the page sets the colours, so they follow light and dark mode."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType  # not in the oldest supported matplotlib

WIDTH, HEIGHT = 350, 225  # in CSS pixels: about the width of a column or a phone, so that text keeps its size
WIDE = 430  # for charts that need more space
COLOURS = 10
DASHES = ("-", "--", ":", "-.")
# matplotlib needs real colours. These placeholders are replaced by CSS variables in the SVG.
INK, MUTED, GRID, CARD = "#010101", "#020202", "#030303", "#040404"
NAMED = {INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--line)", CARD: "var(--card)"}
NAMED |= {f"#0a0a{number:02x}": f"var(--c{number})" for number in range(COLOURS)}
STYLE: "dict[RcKeyType, str | float | bool]" = {
    "svg.fonttype": "none",  # keeps text as text, for screen readers, search and the font of the page
    "svg.hashsalt": "papi",
    "text.parse_math": False,  # a class may be called "$x$"
    "font.size": 11,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.2,
    "lines.linewidth": 2.2,
    "lines.markersize": 4,
}


@dataclass(frozen=True)
class Chart:
    """A chart with its heading, alternative text and caption."""

    title: str
    svg: Markup
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Line:
    """A curve, or points with spread if `spread` is given."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    spread: Sequence[float] | None = None


def colour(number: int) -> str:
    """Return the placeholder of a colour of the style sheet; colours repeat after the last one."""
    return f"#0a0a{number % COLOURS:02x}"


def shortened(name: str, length: int = 16) -> str:
    """Shorten a name to fit next to an axis."""
    plain = "".join(" " if character < " " else character for character in name)
    return plain if len(plain) <= length else plain[: length - 1] + "…"


def _style(grid: bool = True) -> AbstractContextManager[None]:
    return mpl.rc_context({**STYLE, "axes.grid": grid})


def _axes(width: int = WIDTH, height: int = HEIGHT) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
    return figure, figure.add_subplot()


def lines(key: str, curves: Sequence[Line], *, x: str, y: str, percent: bool = False, whole: bool = True) -> Markup:
    """Draw curves over epochs or any other number."""
    with _style():
        figure, axes = _axes()
        for number, curve in enumerate(curves):
            # Curves also differ by dashes, for people who cannot distinguish the colours.
            dashes = DASHES[(number if len(curves) <= COLOURS else number // COLOURS) % len(DASHES)]
            shade, label = colour(curve.colour), shortened(curve.label, 30)
            if curve.spread is None:
                marker = "o" if len(curve.x) <= 15 else ""
                axes.plot(curve.x, curve.y, label=label, marker=marker, color=shade, linestyle=dashes)
            else:
                axes.errorbar(
                    curve.x, curve.y, curve.spread, label=label, marker="o", capsize=3, color=shade, linestyle=dashes
                )
        _label(axes, x, y, percent, whole)
        if not whole:  # only a few values: label them all
            values = sorted({value for curve in curves for value in curve.x})
            axes.set_xticks(values, [f"{value:g}" for value in values])
        if len(curves) > 1:
            _legend(axes)
        return _svg(figure, key)


def points(key: str, places: Sequence[Line], *, x: str, y: str) -> Markup:
    """Draw a scatter plot of named points."""
    with _style():
        figure, axes = _axes()
        named: set[str] = set()
        for place in places:
            label = "_" if place.label in named else shortened(place.label, 30)
            named.add(place.label)
            marker = "osD^vPX*<>"[place.colour % 10]
            axes.plot(place.x, place.y, marker, color=colour(place.colour), markersize=8, label=label)
        _label(axes, x, y, percent=True, whole=False)
        axes.margins(0.12)
        axes.set_xlim(left=0)
        _legend(axes)
        return _svg(figure, key)


def bars(key: str, edges: np.ndarray, before: np.ndarray, after: np.ndarray, names: tuple[str, str], x: str) -> Markup:
    """Draw two histograms over the same bins, as percentages."""
    with _style():
        figure, axes = _axes()
        width = np.diff(edges)
        axes.bar(edges[:-1], before, width, align="edge", color=GRID, edgecolor=CARD, label=names[0])
        axes.bar(edges[:-1] + width * 0.2, after, width * 0.6, align="edge", color=colour(0), label=names[1])
        _label(axes, x, "percentage of images", percent=True, whole=False)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        _legend(axes)
        return _svg(figure, key)


def reliability(key: str, said: np.ndarray, right: np.ndarray, count: np.ndarray) -> Markup:
    """Draw accuracy against confidence; the size of a mark is the number of predictions."""
    with _style():
        figure, axes = _axes(WIDE, 330)
        axes.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1.2, label="perfectly calibrated")
        axes.plot(said, right, color=colour(0), label="this model")
        axes.scatter(said, right, 16 + 180 * count / count.max(), color=colour(0), edgecolors=CARD, zorder=3)
        _label(axes, "confidence", "accuracy", percent=True, whole=False)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_xlim(-0.03, 1.05)
        axes.set_ylim(-0.03, 1.05)
        _legend(axes)
        return _svg(figure, key)


def matrix(
    key: str, shares: np.ndarray, names: Sequence[str], *, rows: str, columns: str, groups: Sequence[str] = ()
) -> Markup:
    """Draw a square matrix of fractions as shades, with numbers if they fit and lines between groups."""
    count = len(names)
    with _style(grid=False):
        figure, axes = _axes(WIDE, 430)
        largest = max(float(shares[~np.eye(count, dtype=bool)].max(initial=0)), 1e-9)
        for row, column in np.ndindex(shares.shape):
            share, same = float(shares[row, column]), row == column
            # The diagonal would dominate the colour scale, so it is grey.
            strength = 0.0 if same else share / largest
            axes.add_patch(
                mpl.patches.Rectangle(
                    (column + 0.04, row + 0.04), 0.92, 0.92, facecolor=GRID if same else colour(1),
                    alpha=0.55 if same else 0.07 + 0.78 * strength, linewidth=0,
                )
            )  # fmt: skip
            if share >= 0.005 and count <= 12:
                axes.text(column + 0.5, row + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=9)
        for place in (k for k, (group, after) in enumerate(pairwise(groups), 1) if group != after):
            axes.axhline(place, color=MUTED, linewidth=1)
            axes.axvline(place, color=MUTED, linewidth=1)
        axes.set_xlim(0, count)
        axes.set_ylim(count, 0)
        axes.set_xticks(np.arange(count) + 0.5, [shortened(name, 12) for name in names], rotation=90)
        axes.set_yticks(np.arange(count) + 0.5, [shortened(name, 12) for name in names])
        axes.set_ylabel(rows)
        axes.set_xlabel(columns)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return _svg(figure, key)


def plane(
    key: str, places: np.ndarray, groups: np.ndarray, names: Sequence[str], stars: np.ndarray, star_groups: np.ndarray
) -> Markup:
    """Draw points `(S, 2)` coloured by group (−1 is grey), with stars and the name of each group."""
    with _style(grid=False):
        figure, axes = _axes(WIDE, 400)
        for group in range(-1, len(names)):
            here = places[groups == group]
            if len(here):
                shade = MUTED if group < 0 else colour(group)
                axes.scatter(here[:, 0], here[:, 1], s=9, color=shade, alpha=0.55, linewidths=0)
        for place, group in zip(stars, star_groups, strict=True):
            shade = MUTED if group < 0 else colour(group)
            axes.plot(*place, marker="*", markersize=15, color=shade, markeredgecolor=CARD, markeredgewidth=1.2)
        for group, name in enumerate(names):
            at = stars[star_groups == group]
            at = at[0] if len(at) else np.median(places[groups == group], axis=0)
            axes.annotate(shortened(name, 18), at, (0, 8), textcoords="offset points", ha="center", fontsize=11.5)
        axes.set_axis_off()
        axes.margins(0.06)
        return _svg(figure, key)


def _label(axes: Axes, x: str, y: str, percent: bool, whole: bool) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if whole:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if percent:
        low, high = axes.get_ylim()
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0 if high - low >= 0.05 else 1))


def _legend(axes: Axes) -> None:
    """Add a legend above the chart, where it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2, fontsize=11)


def _svg(figure: Figure, key: str) -> Markup:
    """Return the figure as an inline SVG element without fixed size, with unique ids and CSS colours."""
    stream = io.StringIO()
    with warnings.catch_warnings():
        # The browser has fonts for all scripts and emoji; matplotlib's font is only used to measure text.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        warnings.filterwarnings("ignore", message=".*Matplotlib currently does not support.*")
        write: Callable[..., None] = FigureCanvasSVG(figure).print_svg  # without the second layout of `savefig`
        write(stream, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<svg [^>]*viewBox=", f'<svg class="plot-{key}" aria-hidden="true" focusable="false" viewBox=', text)
    # Replace only inside tags: a class may be called "#010101".
    text = re.sub(r"<[^>]+>", lambda tag: _own_names(tag[0], key), text)
    return Markup(re.sub(r"\n\s*", "\n", text))  # drawn by matplotlib, which escapes names  # nosec B704


def _own_names(tag: str, key: str) -> str:
    """Return a tag with ids that are unique on the page, CSS colours, and the font of the page."""
    tag = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{key}-", tag)
    tag = re.sub(r" font-family: [^;\"]*;", "", tag)
    for sentinel, name in NAMED.items():
        tag = tag.replace(sentinel, name)
    return tag
