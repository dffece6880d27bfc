"""Images with what the model made of them: the strip from sure to doubtful, the desk of decisions, the mix-ups."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from papi.report import plots
from papi.report.mistakes import Confusion, Pair, find_confusion, matrix_classes, pairs
from papi.report.pictures import data_uri
from papi.report.plots import Chart
from papi.report.run import Run
from papi.report.tables import percent

STRIP = 15
DESK = 100  # images to decide on: an evening's work, and what keeps the page small
BARS = 4  # candidates with a bar of their own


@dataclass(frozen=True)
class Bar:
    """One candidate of an image."""

    name: str
    share: float
    is_true: bool


@dataclass(frozen=True)
class Card:
    """A training image with its candidates, likeliest first."""

    index: int
    picture: str  # a data URI; empty where there is none
    alt: str
    bars: list[Bar]
    more: int  # candidates without a bar
    verdict: str  # "right", "wrong" or "" where the truth is not known


@dataclass(frozen=True)
class Seen:
    """A picture with a line below it."""

    picture: str
    alt: str
    caption: str


@dataclass(frozen=True)
class MixUp:
    """A pair of classes with images that show why they are mixed up."""

    a: str
    b: str
    sentence: str
    images: list[Seen]


@dataclass(frozen=True)
class Mistakes:
    """The section on mistakes, or on hesitation."""

    heading: str
    intro: str
    chart: Chart
    mixed: list[MixUp]


@dataclass(frozen=True)
class Doubtful:
    """An image to decide on; `candidates` are the numbers of classes, likeliest first."""

    index: int
    file: str
    picture: str
    alt: str
    candidates: list[int]
    shares: list[float]


@dataclass(frozen=True)
class Desk:
    """All that the section of decisions shows and its script knows."""

    items: list[Doubtful]
    total: int  # ambiguous images in all
    state: Mapping[str, object]  # what the script of the page reads, as JSON


def picture(run: Run, index: int, test: bool = False) -> str:
    """A training or test image as a data URI; empty where the data are gone or are no images."""
    if run.dataset is None or run.dataset.kind == "features":
        return ""
    images = run.dataset.test_samples if test else run.dataset.samples
    return "" if images is None else data_uri(np.asarray(images[index]))


def file_name(run: Run, index: int) -> str:
    """The file of a training image; empty if it comes from none, or the data are gone."""
    names = None if run.dataset is None else run.dataset.file_names
    return "" if names is None else names[index]


def strip(run: Run) -> list[Card]:
    """Ambiguous training images from the surest to the most doubtful, closer together where doubt is."""
    if run.resolved is None or run.candidates is None:
        return []
    order = np.argsort(-run.resolved.rank)
    order = order[run.candidates[order].sum(1) > 1]
    steps = np.linspace(0, 1, min(STRIP, len(order))) ** 0.4
    chosen = order[np.unique((steps * (len(order) - 1)).astype(int))]
    return [_card(run, int(index)) for index in chosen]


def _card(run: Run, index: int) -> Card:
    assert run.resolved is not None
    classes, shares = _ordered(run, index)
    true = None if run.labels is None else int(run.labels[index])
    bars = [Bar(run.class_name(k), share, k == true) for k, share in zip(classes, shares, strict=True)]
    shown = bars[:BARS]
    shown += [bar for bar in bars[BARS:] if bar.is_true]
    label = run.class_name(classes[0])
    verdict = "" if true is None else "right" if classes[0] == true else "wrong"
    alt = f"Training image {index}, taken for {label}"
    return Card(index, picture(run, index), alt, shown, len(bars) - len(shown), verdict)


def _ordered(run: Run, index: int) -> tuple[list[int], list[float]]:
    """Candidates of an image, the resolved label first, then by confidence."""
    assert run.resolved is not None
    assert run.candidates is not None
    assert run.shares is not None
    classes = np.flatnonzero(run.candidates[index])
    shares = run.shares[index, classes]
    order = np.lexsort((classes, -shares))
    return [int(k) for k in classes[order]], [float(share) for share in shares[order]]


def desk(run: Run) -> Desk | None:
    """The images most worth a second look, in order."""
    if run.resolved is None or run.candidates is None:
        return None
    ambiguous = run.candidates.sum(1) > 1
    order = np.argsort(run.resolved.rank)
    order = order[ambiguous[order]][:DESK]
    items = []
    for index in map(int, order):
        classes, shares = _ordered(run, index)
        file = file_name(run, index)
        alt = f"Training image {index}" + (f", {file}" if file else "")
        items.append(Doubtful(index, file, picture(run, index), alt, classes, shares))
    state: dict[str, object] = {
        "key": f"papi-decisions:{run.identity}",
        "classes": list(run.class_names),
        "items": [
            {
                "index": item.index,
                "file": item.file,
                "candidates": item.candidates,
                "shares": [round(share, 4) for share in item.shares],
            }
            for item in items
        ],
    }
    return Desk(items, int(ambiguous.sum()), state)


_WORDS = {
    "test": (
        "What it mixes up",
        "Of the test images of each class (rows), the share that was taken for another (columns), in percent.",
        "true class",
        "taken for",
    ),
    "training": (
        "What it mixes up",
        "There are no test images with true labels. Of the training images of each class (rows), this is the share "
        "that was resolved to another (columns), in percent.",
        "true class",
        "resolved to",
    ),
    "hesitation": (
        "What it hesitates between",
        "True labels are not known, so mistakes cannot be counted. Shown is doubt: of the images resolved to a label "
        "(rows), how much confidence remains with the second choice (columns), in percent.",
        "resolved to",
        "second choice",
    ),
}


def mistakes(run: Run) -> Mistakes | None:
    """The matrix of mix-ups and the images of the most frequent ones."""
    confusion = find_confusion(run)
    if confusion is None:
        return None
    heading, intro, rows, columns = _WORDS[confusion.kind]
    shown = matrix_classes(confusion)
    names = [run.class_name(k) for k in shown]
    if len(shown) < len(run.class_names):
        intro += f" Only the {len(shown)} classes that are mixed up most are drawn."
    found = pairs(confusion)
    svg = plots.matrix("matrix", confusion.shares[np.ix_(shown, shown)], names, rows=rows, columns=columns)
    told = "; ".join(_pair_sentence(run, confusion, pair) for pair in found[:3]) or "No two classes are mixed up."
    chart = Chart("Class against class", svg, f"Matrix of {len(shown)} classes. Most frequent: {told}", "")
    return Mistakes(heading, intro, chart, [_mix_up(run, confusion, pair) for pair in found])


def _pair_sentence(run: Run, confusion: Confusion, pair: Pair) -> str:
    a, b = run.class_name(pair.a), run.class_name(pair.b)
    verb = {"test": "taken for", "training": "resolved to", "hesitation": "torn towards"}[confusion.kind]
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
            images.append(Seen(uri, f"{what} {index}: {first} or {other}", f"{first}?"))
        else:
            images.append(Seen(uri, f"{what} {index}: {first}, taken for {other}", f"is {first}"))
    return MixUp(run.class_name(pair.a), run.class_name(pair.b), _pair_sentence(run, confusion, pair), images)
