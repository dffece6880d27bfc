"""What labels tell of each other: how often one stands beside another, and what became of each class."""

from dataclasses import dataclass

import numpy as np

from papi.report import plots
from papi.report.plots import Chart
from papi.report.run import Run
from papi.report.tables import SURE, percent
from papi.runs.labels import set_prior

LISTED = 8  # pairs
EVEN = 0.12  # if the highest share is not above the lowest by more, labels stand together by chance
MATRIX = 24  # classes: more cannot be read


@dataclass(frozen=True)
class Outcome:
    """A class, and the training images that were resolved to it."""

    name: str
    images: int
    share: float  # of the largest class
    sure: float  # share of them that the model is sure of
    possible: int  # images that have it among their candidates
    group: str = ""  # what stands above it in a tree of classes


@dataclass(frozen=True)
class Standins:
    """Which labels stand beside which."""

    chart: Chart
    pairs: list[str]  # sentences


def standins(run: Run) -> Standins | None:
    """The matrix of the labels that stand beside others, and the most frequent pairs in words."""
    if run.shares is None or run.candidates is None or not (run.candidates.sum(1) > 1).any():
        return None
    prior = set_prior(run.shares, run.candidates)
    np.fill_diagonal(prior, 0)
    known = run.shares.sum(0) >= 1  # of a class without images nothing can be said
    strength = np.where(known[:, None], prior, 0)
    most = np.argsort(-np.maximum(strength.max(0), strength.max(1)), kind="stable")[:MATRIX]
    chosen = np.sort(most)
    names = [run.class_name(int(k)) for k in chosen]
    svg = plots.matrix("standins", strength[np.ix_(chosen, chosen)], names, rows="images of", columns="also carry")
    pairs = []
    for place in np.argsort(-strength, axis=None, kind="stable")[:LISTED]:
        k, j = (int(each) for each in np.unravel_index(place, strength.shape))
        if strength[k, j] < 0.05:
            break
        pairs.append(
            f"{percent(strength[k, j], 0)} of images of “{run.class_name(k)}” also carry “{run.class_name(j)}”"
        )
    apart = strength[known][:, known]
    apart = apart[~np.eye(len(apart), dtype=bool)]
    if len(apart) > 2 and np.ptp(apart) < EVEN:
        pairs = [
            f"Every label stands beside every other about equally often ({percent(apart.min(), 0)} to "
            f"{percent(apart.max(), 0)}): wrong candidates seem to be drawn at random"
        ]
    alt = "Matrix of labels that stand beside each other. " + "; ".join(pairs[:3])
    few = "" if len(names) == len(run.class_names) else f" The {len(names)} classes with the strongest ties are drawn."
    caption = (
        "Rows are what the images are, as far as the model knows; columns are the labels that they carry as well, in "
        f"percent of the images.{few}"
    )
    return Standins(Chart("Label beside label", svg, alt, caption), pairs)


def outcomes(run: Run) -> list[Outcome]:
    """What became of each class, most images first; those that vanished are last. With a tree, group by group."""
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
    """Classes that are candidates of images, but that no image was resolved to."""
    return [each.name for each in found if not each.images and each.possible]
