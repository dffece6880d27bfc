"""Statistics of labels: how often they occur together, and how many images are resolved to each class."""

from dataclasses import dataclass

import numpy as np

from papi.report import plots
from papi.report.plots import Chart
from papi.report.run import Run
from papi.report.tables import SURE, percent

LISTED = 8  # pairs
EVEN = 0.12  # if all shares lie within this range, labels occur together at random
MATRIX = 24  # classes: more are not legible


@dataclass(frozen=True)
class Outcome:
    """A class and the training images that are resolved to it."""

    name: str
    images: int
    share: float  # of the largest class
    sure: float  # fraction of them with a confident label
    possible: int  # images that have it as a candidate
    group: str = ""  # its ancestors in the class hierarchy


@dataclass(frozen=True)
class Standins:
    """Labels that occur together."""

    chart: Chart
    pairs: list[str]  # sentences


def standins(run: Run) -> Standins | None:
    """Return the matrix of labels that occur together, and the most frequent pairs as sentences."""
    if run.together is None or not (run.sizes > 1).any():
        return None
    prior = run.together.prior
    np.fill_diagonal(prior, 0)
    known = run.together.members >= 1  # classes without images have no statistics
    strength = np.where(known[:, None], prior, 0)
    most = np.argsort(-np.maximum(strength.max(0), strength.max(1)), kind="stable")[:MATRIX]
    chosen = np.sort(most)
    names = [run.class_name(int(k)) for k in chosen]
    svg = plots.matrix(
        "standins", strength[np.ix_(chosen, chosen)], names, rows="images of class", columns="also have candidate"
    )
    pairs = []
    for place in np.argsort(-strength, axis=None, kind="stable")[:LISTED]:
        k, j = (int(each) for each in np.unravel_index(place, strength.shape))
        if strength[k, j] < 0.05:
            break
        pairs.append(
            f"{percent(strength[k, j], 0)} of the images of “{run.class_name(k)}” also have the candidate "
            f"“{run.class_name(j)}”."
        )
    apart = strength[known][:, known]
    apart = apart[~np.eye(len(apart), dtype=bool)]
    if len(apart) > 2 and np.ptp(apart) < EVEN:
        pairs = [
            f"All labels occur together about equally often ({percent(apart.min(), 0)} to "
            f"{percent(apart.max(), 0)}): wrong candidates seem to be random."
        ]
    alt = "Matrix of labels that occur together. " + " ".join(pairs[:3])
    few = "" if len(names) == len(run.class_names) else f" Only the {len(names)} most related classes are shown."
    caption = (
        "Percentage of the images of each class (rows, as resolved by the model) that also have each label as a "
        f"candidate (columns).{few}"
    )
    return Standins(Chart("Labels that occur together", svg, alt, caption), pairs)


def outcomes(run: Run) -> list[Outcome]:
    """Return the resolved images of each class, the largest class first. With a hierarchy, group by group."""
    if run.resolved is None or run.candidates is None:
        return []
    classes = len(run.class_names)
    counts = np.bincount(run.resolved.label, minlength=classes)
    sure = np.bincount(run.resolved.label[run.resolved.confidence >= SURE], minlength=classes)
    possible = run.candidates.sum(0)
    return [
        Outcome(
            run.class_name(int(k)),
            int(counts[k]),
            counts[k] / counts.max(),
            sure[k] / max(1, counts[k]),
            int(possible[k]),
            run.group(int(k)),
        )
        for k in run.by_group(np.argsort(-counts, kind="stable").tolist())
    ]


def vanished(found: list[Outcome]) -> list[str]:
    """Return classes that are candidates, but to which no image is resolved."""
    return [each.name for each in found if not each.images and each.possible]
