"""How good annotators are, and who disagrees with whom."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_matrix

from papi.data.dataset import Opinions
from papi.data.own.dawid_skene import consensus, fits

MOST_COMPARED = 40  # annotators, those with the most images: pairs grow with the square
ENOUGH = 5  # images that two must have in common before their disagreement says anything


@dataclass(frozen=True)
class Annotator:
    """What is known about one annotator."""

    name: str
    images: int
    accuracy: float | None  # estimated: how often they name the truth; None if it cannot be computed
    habit: tuple[str, str, float] | None = None  # a class, what they say instead most often, and how often


@dataclass(frozen=True)
class Pair:
    """Two annotators and the images that both have seen."""

    first: str
    second: str
    common: int
    differing: int  # images for which they have named no label in common

    @property
    def share(self) -> float:
        """How often they disagree."""
        return self.differing / self.common


def annotators(opinions: Opinions, class_names: tuple[str, ...]) -> list[Annotator]:
    """Everybody, the least accurate first. Accuracy is estimated from the answers alone (Dawid and Skene)."""
    said, count, classes = opinions.said, len(opinions.annotators), len(class_names)
    images = _answers(opinions).getnnz(1)
    if not fits(count, classes):
        found = [Annotator(name, int(each), None) for name, each in zip(opinions.annotators, images, strict=True)]
        return sorted(found, key=lambda each: -each.images)
    whole = consensus(said, opinions.rows, count, classes)
    # How often each says l where k is true: of all images, not of those with the class k.
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
    """Pairs of annotators who have enough images in common, the most different first."""
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
    """`(A, N)`: how many labels each annotator has named of each image."""
    ones = np.ones(len(opinions.said), np.int64)
    places = opinions.said[:, 1], opinions.said[:, 0]
    return csr_matrix((ones, places), shape=(len(opinions.annotators), opinions.rows))


def _named_by(opinions: Opinions, annotator: int, classes: int) -> csr_matrix:
    """`(N, K)`: what one annotator has named."""
    own = opinions.said[opinions.said[:, 1] == annotator]
    return csr_matrix((np.ones(len(own), np.int8), (own[:, 0], own[:, 2])), shape=(opinions.rows, classes))
