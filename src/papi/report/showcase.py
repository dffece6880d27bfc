"""Example images: resolved labels from confident to doubtful, and confused classes."""

from dataclasses import dataclass

import numpy as np

from papi.report import plots
from papi.report.desk import candidates_of
from papi.report.mistakes import Confusion, Pair, find_confusion, matrix_classes, pairs
from papi.report.pictures import file_name, picture
from papi.report.plots import Chart
from papi.report.run import Run
from papi.report.tables import percent

STRIP = 15
BARS = 4  # candidates with a bar


@dataclass(frozen=True)
class Bar:
    """One candidate of an image."""

    name: str
    share: float
    is_true: bool


@dataclass(frozen=True)
class Card:
    """A training image with its candidates, the most likely first."""

    index: int
    name: str  # of its file, otherwise its number
    picture: str  # a data URI; empty if there is none
    alt: str
    bars: list[Bar]
    more: int  # candidates without a bar
    verdict: str  # "right", "wrong", or "" if the true label is unknown


@dataclass(frozen=True)
class Seen:
    """A picture with a line below it."""

    picture: str
    alt: str
    caption: str


@dataclass(frozen=True)
class MixUp:
    """A pair of confused classes with example images."""

    a: str
    b: str
    sentence: str
    images: list[Seen]


@dataclass(frozen=True)
class Mistakes:
    """The section on confused classes, or on second choices."""

    heading: str
    intro: str
    chart: Chart
    mixed: list[MixUp]


def strip(run: Run) -> list[Card]:
    """Return ambiguous training images from the most to the least confident label, with more doubtful ones."""
    if run.resolved is None or run.candidates is None:
        return []
    order = np.argsort(-run.resolved.confidence, kind="stable")
    order = order[run.sizes[order] > 1]
    steps = np.linspace(0, 1, min(STRIP, len(order))) ** 0.4
    chosen = order[np.unique((steps * (len(order) - 1)).astype(int))]
    return [_card(run, int(index)) for index in chosen]


def _card(run: Run, index: int) -> Card:
    classes, shares = candidates_of(run, index)
    true = None if run.labels is None else int(run.labels[index])
    bars = [Bar(run.class_name(k), share, k == true) for k, share in zip(classes, shares, strict=True)]
    shown = bars[:BARS]
    shown += [bar for bar in bars[BARS:] if bar.is_true]
    verdict = "" if true is None else "right" if classes[0] == true else "wrong"
    name = file_name(run, index).rpartition("/")[2] or f"image {index}"
    alt = f"Training image {index}, resolved to {run.class_name(classes[0])}"
    return Card(index, name, picture(run, index), alt, shown, len(bars) - len(shown), verdict)


_WORDS = {
    "test": (
        "Confused classes",
        "Percentage of the test images of each class (rows) that were predicted as each class (columns).",
        "true class",
        "predicted class",
    ),
    "training": (
        "Confused classes",
        "There are no test images with true labels. This is the percentage of the training images of each class (rows) "
        "that were resolved to each class (columns).",
        "true class",
        "resolved to",
    ),
    "hesitation": (
        "Close decisions",
        "True labels are unknown, so mistakes cannot be counted. This is the mean confidence in the second choice "
        "(columns) for images resolved to each label (rows), in percent.",
        "resolved to",
        "second choice",
    ),
}


def mistakes(run: Run) -> Mistakes | None:
    """Return the confusion matrix and example images of the most frequent confusions."""
    confusion = find_confusion(run)
    if confusion is None:
        return None
    heading, intro, rows, columns = _WORDS[confusion.kind]
    shown = run.by_group(matrix_classes(confusion))
    names, groups = [run.class_name(k) for k in shown], [run.group(k) for k in shown]
    if run.levels:
        intro += f" Lines separate the groups of the hierarchy: {', '.join(dict.fromkeys(groups))}."
    if len(shown) < len(run.class_names):
        intro += f" Only the {len(shown)} most confused classes are shown."
    found = pairs(confusion)
    shares = confusion.shares[np.ix_(shown, shown)]
    svg = plots.matrix("matrix", shares, names, rows=rows, columns=columns, groups=groups)
    told = "; ".join(_pair_sentence(run, confusion, pair) for pair in found[:3]) or "No two classes are confused."
    chart = Chart("Confusion matrix", svg, f"Matrix of {len(shown)} classes. Most frequent: {told}", "")
    return Mistakes(heading, intro, chart, [_mix_up(run, confusion, pair) for pair in found])


def _pair_sentence(run: Run, confusion: Confusion, pair: Pair) -> str:
    a, b = run.class_name(pair.a), run.class_name(pair.b)
    verb = {"test": "predicted as", "training": "resolved to", "hesitation": "close to"}[confusion.kind]
    return f"{percent(pair.a_for_b)} of “{a}” {verb} “{b}”, {percent(pair.b_for_a)} the other way round"


def _mix_up(run: Run, confusion: Confusion, pair: Pair) -> MixUp:
    images = []
    for index in pair.examples:
        uri = picture(run, index, test=confusion.kind == "test")
        if not uri:
            continue
        first, other = run.class_name(int(confusion.first[index])), run.class_name(int(confusion.other[index]))
        what = "Test image" if confusion.kind == "test" else "Training image"
        if confusion.kind == "hesitation":
            images.append(Seen(uri, f"{what} {index}: {first} or {other}", first))
        else:
            images.append(Seen(uri, f"{what} {index}: {first}, confused with {other}", f"is {first}"))
    return MixUp(run.class_name(pair.a), run.class_name(pair.b), _pair_sentence(run, confusion, pair), images)
