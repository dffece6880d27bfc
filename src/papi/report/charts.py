"""The charts of a page with their captions."""

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
        caption = "Training minimizes the loss."
        if len(terms) > 1:
            caption += f" It is the sum of {what}; a term that is phased in slowly can raise the total at first."
        alt = f"Loss by epoch: from {terms[0].y[0]:.2f} to {terms[0].y[-1]:.2f}."
        svg = plots.lines("loss", terms, x="epoch", y="loss")
        charts.append(Chart("Loss", svg, alt, caption))
    both = _lines(run, {"classifier": lambda row: row.test_accuracy, "prototypes": lambda row: row.prototype_accuracy})
    charts += _curves(
        "accuracy", "Test accuracy", both, "test accuracy",
        "The classifier makes the predictions. The prototypes, one typical point per class, only take part in training."
        if len(both) > 1 else "The fraction of test images that the classifier labels correctly.",
    )  # fmt: skip
    resolved = _line(run, lambda row: row.disambiguation_accuracy, "resolved labels", 2)
    charts += _curves(
        "resolved", "Resolved labels", resolved, "resolved correctly",
        "The fraction of training images that are resolved to their true label.",
    )  # fmt: skip
    return charts


def _lines(run: Run, measures: Mapping[str, Measure]) -> list[Line]:
    """Return a curve for each available measure, by its name in the legend."""
    return [line for n, (label, measure) in enumerate(measures.items()) for line in _line(run, measure, label, n)]


def _line(run: Run, measure: Measure, label: str, colour: int) -> list[Line]:
    line = Line(label, *course(run.rows, measure), colour)
    return [line] if line.x else []


def _curves(key: str, title: str, curves: list[Line], y: str, caption: str) -> list[Chart]:
    """Return a chart of percentages by epoch, if there is anything to draw."""
    if not curves:
        return []
    told = "; ".join(f"{c.label} from {percent(c.y[0])} to {percent(c.y[-1])}" for c in curves)
    return [Chart(title, plots.lines(key, curves, x="epoch", y=y, percent=True), f"{title} by epoch: {told}.", caption)]


def sharpening(run: Run) -> list[Chart]:
    """Charts of the confidence in the chosen label: by epoch, and before and after training."""
    means = _line(run, lambda row: row.mean_confidence, "mean confidence", 0)
    charts = _curves(
        "confidence", "Mean confidence by epoch", means, "mean confidence",
        "Confidence in the most likely candidate, averaged over all training images.",
    )  # fmt: skip
    if run.candidates is None or run.resolved is None:
        return charts
    start = 1 / run.sizes.clip(min=1)
    counts = [np.histogram(values, CONFIDENCE_BINS)[0] / len(start) for values in (start, run.resolved.confidence)]
    svg = plots.bars(
        "sharper",
        CONFIDENCE_BINS,
        counts[0],
        counts[1],
        ("before training", "after training"),
        "confidence in the chosen label",
    )
    end = float(run.resolved.confidence.mean())
    alt = f"Mean confidence was {percent(float(start.mean()))} before training and {percent(end)} after training."
    outcome = "one candidate is clearly preferred for most images" if end >= 0.7 else "many images are still ambiguous"
    caption = f"Before training, all candidates of an image are equally likely. After training, {outcome}."
    return [*charts, Chart("Confidence before and after training", svg, alt, caption)]


def grouping(run: Run) -> list[Chart]:
    """Charts of the embedding: the map of images, and the similarity within and between classes."""
    charts = []
    found = find_map(run)
    if found is not None:
        svg = plots.plane("map", found.places, found.groups, found.names, found.stars, found.star_groups)
        grey = " Grey points belong to the remaining classes." if (found.groups < 0).any() else ""
        stars = " Stars are the prototypes." if len(found.stars) else ""
        caption = (
            f"Each point is a {found.kind} image, coloured by its predicted label.{stars} Images with similar "
            f"embeddings lie close together ({found.technique}; distances between distant groups mean little).{grey}"
        )
        groups = f"{len(found.names)} coloured groups: {', '.join(found.names)}"
        alt = f"Map of {len(found.places)} {found.kind} images in {groups}."
        charts.append(Chart("Map of the images", svg, alt, caption))
    lines = _lines(
        run, {"within a class": lambda row: row.intra_similarity, "between classes": lambda row: row.inter_similarity}
    )
    if lines:
        svg = plots.lines("similarity", lines, x="epoch", y="similarity (1 = identical)")
        told = "; ".join(f"{line.label} {line.y[-1]:.2f}" for line in lines)
        caption = "A widening gap is good: images of one class become more similar than images of different classes."
        charts.append(Chart("Similarity of embeddings", svg, f"Similarity in the last epoch: {told}.", caption))
    return charts


def trust(found: Reliability) -> Chart:
    """Chart of calibration: whether a confidence of 90% means an accuracy of 90%."""
    gap = float(((found.said - found.right) * found.count).sum() / found.count.sum())
    lean = "overconfident" if gap > 0.02 else "underconfident" if gap < -0.02 else "well calibrated"
    svg = plots.reliability("trust", found.said, found.right, found.count)
    alt = f"Calibration: expected error {percent(found.error)}; the model is {lean}."
    caption = (
        f"On the dashed line, confidence equals accuracy. This model is {lean}: on average, its confidence "
        f"differs from its accuracy by {percent(found.error)} (expected calibration error). A larger mark stands for "
        "more images."
    )
    return Chart("Confidence and accuracy", svg, alt, caption)


def overlaid(rows: Sequence[Standing]) -> list[Chart]:
    """Charts that show one metric of all runs."""
    wanted: list[tuple[str, str, str, Measure]] = [
        ("all-test-accuracy", "Test accuracy", "test accuracy", lambda row: row.test_accuracy),
        ("all-resolved", "Resolved labels", "resolved correctly", lambda row: row.disambiguation_accuracy),
        ("all-confidence", "Confidence", "mean confidence", lambda row: row.mean_confidence),
    ]
    charts = []
    for key, title, y, measure in wanted:
        curves = [line for row in rows for line in _line(row.run, measure, row.name, row.colour)]
        charts += _curves(key, title, curves, y, "")
    return charts


def against(rows: Sequence[Standing]) -> list[Chart]:
    """Charts of accuracy against the ambiguity of the labels and against training time."""
    charts = []
    curves = accuracy_by_flip_rate(rows)
    if curves:
        svg = plots.lines(
            "flip", curves, x="flip rate: probability of each wrong label", y="test accuracy", percent=True, whole=False
        )
        told = "; ".join(
            f"{c.label}: " + ", ".join(f"{percent(y)} at {x:g}" for x, y in zip(c.x, c.y, strict=True)) for c in curves
        )
        caption = "More wrong candidates make the task harder. Bars show the standard deviation over repeated runs."
        charts.append(Chart("Accuracy against ambiguity", svg, told, caption))
    places = []
    for row in rows:
        took, accuracy = seconds_of(row.run), accuracy_of(row.run)
        if took is not None and accuracy is not None:
            places.append(Line(row.name, [took / 60], [accuracy], row.colour))
    if places:
        svg = plots.points("compute", places, x="minutes of training", y="test accuracy")
        told = "; ".join(f"{p.label}: {percent(p.y[0])} in {p.x[0]:.1f} minutes" for p in places)
        caption = "Up and to the left is better. Compare times only between runs on the same machine."
        charts.append(Chart("Accuracy against compute", svg, told, caption))
    return charts
