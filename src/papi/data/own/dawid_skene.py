"""How far each annotator can be trusted, and what they say together (Dawid and Skene, 1979).

Every annotator has a confusion matrix: how often they say l where the truth is k. The matrices and the truth are
estimated together by expectation maximisation, from the answers alone: an annotator who agrees with others is trusted
more, and a habit, such as saying "cat" to every dog, is seen through.

crowd-kit has the same and is well kept, but it would bring transformers, nltk, pandas and pyarrow to every
installation. The tests compare with values that it has computed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from papi.data.dataset import Opinions
from papi.errors import UserError

_LEAST = 1e-10  # probability of what was never seen: a sum of logarithms must stay finite
_DOUBT = 1e-4  # that even a label against all evidence keeps as a prior
_MOST_NUMBERS = 10**8  # in all confusion matrices together: 800 MB


@dataclass(frozen=True)
class Consensus:
    """What the annotators say together, and how each of them errs."""

    posterior: np.ndarray  # (N, K) probability of each class; rows without an opinion are as all others on average
    confusion: np.ndarray  # (A, K, K) probability that an annotator says l (last axis) where k (middle axis) is true
    frequency: np.ndarray  # (K,) how often each class is true

    @property
    def accuracy(self) -> np.ndarray:
        """How often each annotator names the truth, `(A,)`."""
        right: np.ndarray = np.einsum("akk,k->a", self.confusion, self.frequency)
        return right


def consensus(
    opinions: np.ndarray, rows: int, annotators: int, classes: int, *, steps: int = 200, tolerance: float = 1e-6
) -> Consensus:
    """Estimate the truth of `rows` images from opinions `(S, 3)`: the image, the annotator and the class they named.

    Of an annotator who names several classes of an image, each counts as a part of one answer. Iteration starts at the
    shares of the votes, and ends when no probability changes by more than the tolerance.
    """
    if not fits(annotators, classes):
        raise UserError(
            f"--candidates.votes dawid-skene needs a table of {classes} x {classes} numbers for each of {annotators} "
            "annotators, which is too much: use union or at-least-N."
        )
    answers = _answers(opinions, rows, annotators, classes)
    votes = np.zeros((rows, classes))
    np.add.at(votes, (opinions[:, 0], opinions[:, 2]), _parts(opinions, annotators))
    votes[votes.sum(1) == 0] = 1
    posterior = votes / votes.sum(1, keepdims=True)
    for _ in range(steps):
        frequency, confusion = _learned(posterior, answers, annotators, classes)
        before, posterior = posterior, _expected(frequency, confusion, answers)
        if np.abs(posterior - before).max(initial=0) < tolerance:
            break
    frequency, confusion = _learned(posterior, answers, annotators, classes)
    return Consensus(posterior, confusion, frequency)


def fits(annotators: int, classes: int) -> bool:
    """Whether the confusion matrices of so many annotators can be kept in memory."""
    return annotators * classes**2 <= _MOST_NUMBERS


def vote_prior(opinions: Opinions, candidates: np.ndarray) -> np.ndarray:
    """How likely each candidate `(N, K) bool` is, as the annotators say together: `(N, K) float32`, rows sum to one.

    No candidate has a probability of zero: somebody has named it.
    """
    rows, classes = candidates.shape
    found = consensus(opinions.said, rows, len(opinions.annotators), classes).posterior
    shares = np.where(candidates, found.clip(min=_DOUBT), 0.0)
    prior: np.ndarray = (shares / shares.sum(1, keepdims=True).clip(min=_LEAST)).astype(np.float32)
    return prior


def _parts(opinions: np.ndarray, annotators: int) -> np.ndarray:
    """What each opinion counts: one, shared among all classes that the annotator named of the image."""
    _, answer, count = np.unique(opinions[:, 0] * annotators + opinions[:, 1], return_inverse=True, return_counts=True)
    parts: np.ndarray = 1 / count[answer]
    return parts


def _answers(opinions: np.ndarray, rows: int, annotators: int, classes: int) -> csr_matrix:
    """Who said what of which image: `(A·K, N)`, the row of an annotator and a class, the column of an image."""
    places = opinions[:, 1] * classes + opinions[:, 2], opinions[:, 0]
    return csr_matrix((_parts(opinions, annotators), places), shape=(annotators * classes, rows))


def _learned(
    posterior: np.ndarray, answers: csr_matrix, annotators: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """How frequent classes are, `(K,)`, and how annotators confuse them, `(A, K, K)`, if the truth is as probable."""
    said = np.asarray(answers @ posterior).reshape(annotators, classes, classes).swapaxes(1, 2)  # true, then said
    said = said.clip(min=_LEAST)
    return posterior.mean(0), said / said.sum(2, keepdims=True)


def _expected(frequency: np.ndarray, confusion: np.ndarray, answers: csr_matrix) -> np.ndarray:
    """How probable each class is for each image, `(N, K)`, if annotators err like that."""
    annotators, classes, _ = confusion.shape
    said = np.log(confusion).swapaxes(1, 2).reshape(annotators * classes, classes)
    scores = np.asarray(answers.T @ said) + np.log(frequency.clip(min=_LEAST))
    shares: np.ndarray = np.exp(scores - scores.max(1, keepdims=True))
    normalised: np.ndarray = shares / shares.sum(1, keepdims=True)
    return normalised
