"""Which charts a page has, with the words that go with them."""

from collections.abc import Mapping, Sequence

import numpy as np

from papi.report import plots
from papi.report.comparison import Standing, accuracy_by_flip_rate
from papi.report.embedding import find_map
from papi.report.measures import Measure, course, loss_terms
from papi.report.mistakes import Reliability
from papi.report.plots import Chart, Line
from papi.report.run import Run
from papi.report.tables import accuracy_of, percent, seconds_of

CONFIDENCE_BINS = np.linspace(0, 1, 11)


def learning(run: Run) -> list[Chart]:
    """Losses, accuracy and resolved labels over the epochs."""
    if not run.rows:
        return []
    charts = []
    terms = _lines(run, loss_terms(run.rows))
    if terms:
        what = " and ".join(line.label for line in terms[1:])
        caption = "What training tries to make small."
        if len(terms) > 1:
            caption += f" It is made of {what}; a part that comes in slowly can lift the whole at first."
        alt = f"Loss by epoch: from {terms[0].y[0]:.2f} to {terms[0].y[-1]:.2f}."
        svg = plots.lines("loss", terms, x="epoch", y="loss")
        charts.append(Chart("Loss", svg, alt, caption))
    both = _lines(run, {"classifier": lambda row: row.test_accuracy, "prototypes": lambda row: row.prototype_accuracy})
    charts += _curves(
        "accuracy", "Recognising new images", both, "test accuracy",
        "The classifier gives the answers. The prototypes, one typical point for each class, guide it while it learns."
        if len(both) > 1 else "How many test images the classifier recognises.",
    )  # fmt: skip
    resolved = _line(run, lambda row: row.disambiguation_accuracy, "resolved labels", 2)
    charts += _curves(
        "resolved", "Resolved labels", resolved, "resolved rightly",
        "How many training images have come to their true label.",
    )  # fmt: skip
    return charts


def _lines(run: Run, measures: Mapping[str, Measure]) -> list[Line]:
    """A curve for each measure that the run has, by its name in the legend."""
    return [line for n, (label, measure) in enumerate(measures.items()) for line in _line(run, measure, label, n)]


def _line(run: Run, measure: Measure, label: str, colour: int) -> list[Line]:
    line = Line(label, *course(run.rows, measure), colour)
    return [line] if line.x else []


def _curves(key: str, title: str, curves: list[Line], y: str, caption: str) -> list[Chart]:
    """A chart of shares over epochs, if there is anything to draw."""
    if not curves:
        return []
    told = "; ".join(f"{c.label} from {percent(c.y[0])} to {percent(c.y[-1])}" for c in curves)
    return [Chart(title, plots.lines(key, curves, x="epoch", y=y, percent=True), f"{title} by epoch: {told}.", caption)]


def sharpening(run: Run) -> list[Chart]:
    """How the confidence in the chosen label grew: over the epochs, and from the first guess to the last."""
    means = _line(run, lambda row: row.mean_confidence, "mean confidence", 0)
    charts = _curves(
        "confidence", "Over the epochs", means, "mean confidence",
        "Confidence in the likeliest candidate, averaged over all training images.",
    )  # fmt: skip
    if run.candidates is None or run.resolved is None:
        return charts
    start = 1 / run.candidates.sum(1).clip(min=1)
    counts = [np.histogram(values, CONFIDENCE_BINS)[0] / len(start) for values in (start, run.resolved.confidence)]
    svg = plots.bars(
        "sharper",
        CONFIDENCE_BINS,
        counts[0],
        counts[1],
        ("at the start", "at the end"),
        "confidence in the chosen label",
    )
    end = float(run.resolved.confidence.mean())
    alt = f"Mean confidence was {percent(float(start.mean()))} at the start and {percent(end)} at the end."
    outcome = "most images lean to one" if end >= 0.7 else "many images still waver"
    caption = f"At the start every candidate of an image is equally likely. At the end {outcome}."
    return [*charts, Chart("From first guess to last", svg, alt, caption)]


def grouping(run: Run) -> list[Chart]:
    """The map of images, and how similarity within and between classes went apart."""
    charts = []
    found = find_map(run)
    if found is not None:
        svg = plots.plane("map", found.places, found.groups, found.names, found.stars, found.star_groups)
        grey = " Grey points belong to classes without a colour of their own." if (found.groups < 0).any() else ""
        stars = " Stars are the prototypes." if len(found.stars) else ""
        caption = (
            f"Every point is a {found.kind} image, coloured by the label the model gives it.{stars} Images the network "
            f"finds alike lie close together ({found.technique}; distances between far groups mean little).{grey}"
        )
        groups = f"{len(found.names)} coloured groups: {', '.join(found.names)}"
        alt = f"Map of {len(found.places)} {found.kind} images in {groups}."
        charts.append(Chart("A map of the images", svg, alt, caption))
    lines = _lines(
        run, {"within a class": lambda row: row.intra_similarity, "between classes": lambda row: row.inter_similarity}
    )
    if lines:
        svg = plots.lines("similarity", lines, x="epoch", y="similarity (1 = the same)")
        told = "; ".join(f"{line.label} {line.y[-1]:.2f}" for line in lines)
        caption = "Good: images of one class grow alike, classes grow apart, and the gap between the curves widens."
        charts.append(Chart("Alike within, apart between", svg, f"Similarity in the last epoch: {told}.", caption))
    return charts


def trust(found: Reliability) -> Chart:
    """Whether "90% sure" means right nine times in ten."""
    gap = float(((found.said - found.right) * found.count).sum() / found.count.sum())
    lean = (
        "too sure of itself" if gap > 0.02 else "more often right than it says" if gap < -0.02 else "honest on average"
    )
    svg = plots.reliability("trust", found.said, found.right, found.count)
    alt = f"Calibration: expected error {percent(found.error)}; the model is {lean}."
    caption = (
        f"On the dashed line the model is right as often as it says. It is {lean}; what it says is off by "
        f"{percent(found.error)} on average (expected calibration error). Larger marks stand for more images."
    )
    return Chart("Said and true", svg, alt, caption)


def overlaid(rows: Sequence[Standing]) -> list[Chart]:
    """The same measurement of all runs in one chart."""
    wanted: list[tuple[str, str, str, Measure]] = [
        ("all-test-accuracy", "Recognising new images", "test accuracy", lambda row: row.test_accuracy),
        ("all-resolved", "Resolved labels", "resolved rightly", lambda row: row.disambiguation_accuracy),
        ("all-confidence", "Confidence", "mean confidence", lambda row: row.mean_confidence),
    ]
    charts = []
    for key, title, y, measure in wanted:
        curves = [line for row in rows for line in _line(row.run, measure, row.name, row.colour)]
        charts += _curves(key, title, curves, y, "")
    return charts


def against(rows: Sequence[Standing]) -> list[Chart]:
    """Accuracy against how ambiguous the labels were, and against the time it took."""
    charts = []
    curves = accuracy_by_flip_rate(rows)
    if curves:
        svg = plots.lines(
            "flip", curves, x="flip rate: chance of each wrong label", y="test accuracy", percent=True, whole=False
        )
        told = "; ".join(
            f"{c.label}: " + ", ".join(f"{percent(y)} at {x:g}" for x, y in zip(c.x, c.y, strict=True)) for c in curves
        )
        caption = (
            "The more wrong labels stand beside the true one, the harder it gets. Bars: spread over repeated runs."
        )
        charts.append(Chart("Accuracy against ambiguity", svg, told, caption))
    places = []
    for row in rows:
        took, accuracy = seconds_of(row.run), accuracy_of(row.run)
        if took is not None and accuracy is not None:
            places.append(Line(row.name, [took / 60], [accuracy], row.colour))
    if places:
        svg = plots.points("compute", places, x="minutes of training", y="test accuracy")
        told = "; ".join(f"{p.label}: {percent(p.y[0])} in {p.x[0]:.1f} minutes" for p in places)
        caption = "Up and to the left is better. Times compare only between runs on the same machine."
        charts.append(Chart("Accuracy against compute", svg, told, caption))
    return charts
