"""Images on which two runs disagree, with both labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papi.report.comparison import PICTURED_IMAGES, PICTURED_PAIRS, Difference
from papi.report.desk import Desk, desk_of_two
from papi.report.pictures import picture


@dataclass(frozen=True)
class Opinion:
    """The label that one run gives an image."""

    run: str
    label: str
    confidence: float
    right: bool | None


@dataclass(frozen=True)
class Disputed:
    """An image and the labels of two runs."""

    index: int
    picture: str
    alt: str
    opinions: tuple[Opinion, Opinion]
    truth: str  # the true label; empty if unknown


@dataclass(frozen=True)
class Dispute:
    """Two runs, how often they disagree, which is right more often, and images of confident disagreements."""

    difference: Difference
    sentence: str
    images: list[Disputed]


def pictured(differences: Sequence[Difference]) -> list[Dispute]:
    """Return the most different pairs with example images."""
    return [
        Dispute(each, _sentence(each), [_disputed(each, int(index)) for index in each.rows[:PICTURED_IMAGES]])
        for each in differences[:PICTURED_PAIRS]
        if len(each.rows)
    ]


def between(difference: Difference, page: Path | None) -> Desk:
    """Return a review section in which a person decides which of two runs is right."""
    a, b = difference.a, difference.b
    return desk_of_two((a.run, b.run), (a.name, b.name), difference.rows, page)


def _sentence(difference: Difference) -> str:
    a, b, rows = difference.a, difference.b, difference.rows
    assert a.run.resolved is not None
    assert b.run.resolved is not None
    told = f"They resolve {len(rows):,} of {difference.images:,} training images differently ({difference.share:.1%})."
    truth = a.run.labels
    if truth is None:
        return f"{told} The true labels are not known."
    right = [int((each.run.resolved.label[rows] == truth[rows]).sum()) for each in (a, b) if each.run.resolved]
    neither = len(rows) - sum(right)
    return f"{told} Of these, {a.name} is right on {right[0]:,}, {b.name} on {right[1]:,}, and neither on {neither:,}."


def _disputed(difference: Difference, index: int) -> Disputed:
    run = difference.a.run
    true = None if run.labels is None else int(run.labels[index])
    opinions = []
    for each in (difference.a, difference.b):
        resolved = each.run.resolved
        assert resolved is not None
        label = int(resolved.label[index])
        right = None if true is None else label == true
        opinions.append(Opinion(each.name, run.class_name(label), float(resolved.confidence[index]), right))
    return Disputed(
        index,
        picture(run, index),
        f"Training image {index}",
        (opinions[0], opinions[1]),
        "" if true is None else run.class_name(true),
    )
