"""Estimates the accuracy of annotators and how often they disagree."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_matrix

from papi.data.dataset import Opinions
from papi.data.own.dawid_skene import consensus, fits

MOST_COMPARED = 40  # annotators with the most images to compare: the number of pairs grows quadratically
ENOUGH = 5  # common images that two annotators need to be compared


@dataclass(frozen=True)
class Annotator:
    """The statistics of one annotator."""

    name: str
    images: int
    accuracy: float | None  # estimated; None if it cannot be computed
    habit: tuple[str, str, float] | None = None  # the most frequent confusion: true class, answer, and its frequency


@dataclass(frozen=True)
class Pair:
    """Two annotators and the images that both have labelled."""

    first: str
    second: str
    common: int
    differing: int  # images for which their answers share no label

    @property
    def share(self) -> float:
        """Fraction of the common images on which they disagree."""
        return self.differing / self.common


def annotators(opinions: Opinions, class_names: tuple[str, ...]) -> list[Annotator]:
    """Return all annotators, the least accurate first. Accuracy is estimated from the answers (Dawid and Skene)."""
    said, count, classes = opinions.said, len(opinions.annotators), len(class_names)
    images = _answers(opinions).getnnz(1)
    if not fits(count, classes):
        found = [Annotator(name, int(each), None) for name, each in zip(opinions.annotators, images, strict=True)]
        return sorted(found, key=lambda each: -each.images)
    whole = consensus(said, opinions.rows, count, classes)
    # How often each answers l if k is true, as a fraction of all images.
    errors = whole.confusion * whole.frequency[:, None]
    errors[:, np.arange(classes), np.arange(classes)] = 0
    found = []
    for number, name in enumerate(opinions.annotators):
        true, instead = divmod(int(errors[number].argmax()), classes)
        share = float(whole.confusion[number, true, instead])
        habit = (class_names[true], class_names[instead], share) if errors[number].max() > 1e-6 else None
        found.append(Annotator(name, int(images[number]), float(whole.accuracy[number]), habit))
    return sorted(found, key=lambda each: (each.accuracy or 0.0, each.name))


def disagreements(opinions: Opinions, classes: int) -> list[Pair]:
    """Return the pairs of annotators with enough common images, the largest disagreement first."""
    busiest = np.argsort(-_answers(opinions).getnnz(1), kind="stable")[:MOST_COMPARED]
    named = {int(number): _named_by(opinions, int(number), classes) for number in busiest}
    pairs = []
    for first, second in combinations(sorted(named), 2):
        common = int(((named[first].getnnz(1) > 0) & (named[second].getnnz(1) > 0)).sum())
        agreeing = int((named[first].multiply(named[second]).getnnz(1) > 0).sum())
        if common >= ENOUGH:
            names = opinions.annotators[first], opinions.annotators[second]
            pairs.append(Pair(*names, common, common - agreeing))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.common, pair.first, pair.second))


def _answers(opinions: Opinions) -> csr_matrix:
    """Return the number of labels that each annotator gave each image, `(A, N)`."""
    ones = np.ones(len(opinions.said), np.int64)
    places = opinions.said[:, 1], opinions.said[:, 0]
    return csr_matrix((ones, places), shape=(len(opinions.annotators), opinions.rows))


def _named_by(opinions: Opinions, annotator: int, classes: int) -> csr_matrix:
    """Return the labels that one annotator gave, `(N, K)`."""
    own = opinions.said[opinions.said[:, 1] == annotator]
    return csr_matrix((np.ones(len(own), np.int8), (own[:, 0], own[:, 2])), shape=(opinions.rows, classes))
