"""Estimates the reliability of annotators and the true labels from their votes (Dawid and Skene, 1979).

Every annotator has a confusion matrix: how often they answer l if the true label is k. The matrices and the true labels
are estimated jointly by expectation maximisation, from the answers alone. An annotator who agrees with others gets more
weight, and systematic errors, such as calling every dog a cat, are corrected.

crowd-kit implements the same model, but it would add transformers, nltk, pandas and pyarrow to every installation. The
tests compare with values computed by crowd-kit.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from papi.data.dataset import Opinions
from papi.errors import UserError

_LEAST = 1e-10  # probability of an unseen answer, so that logarithms stay finite
_DOUBT = 1e-4  # smallest prior of a candidate, even against all evidence
_MOST_NUMBERS = 10**8  # numbers in all confusion matrices: 800 MB


@dataclass(frozen=True)
class Consensus:
    """The estimated labels, and the confusion matrix of each annotator."""

    posterior: np.ndarray  # (N, K) probability of each class; rows without answers get the class frequencies
    confusion: np.ndarray  # (A, K, K) probability that an annotator answers l (last axis) if k (middle axis) is true
    frequency: np.ndarray  # (K,) frequency of each class

    @property
    def accuracy(self) -> np.ndarray:
        """Accuracy of each annotator, `(A,)`."""
        right: np.ndarray = np.einsum("akk,k->a", self.confusion, self.frequency)
        return right


def consensus(
    opinions: np.ndarray, rows: int, annotators: int, classes: int, *, steps: int = 200, tolerance: float = 1e-6
) -> Consensus:
    """Estimate the labels of `rows` images from opinions `(S, 3)`: the image, the annotator and the class they named.

    If an annotator names several classes for an image, each counts as a fraction of one answer. The iteration starts
    with the vote shares and ends when no probability changes by more than the tolerance.
    """
    if not fits(annotators, classes):
        raise UserError(
            f"--candidates.votes dawid-skene needs a {classes} x {classes} matrix for each of {annotators} annotators, "
            "which does not fit into memory: use union or at-least-N."
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
    """Return whether the confusion matrices of all annotators fit into memory."""
    return annotators * classes**2 <= _MOST_NUMBERS


def vote_prior(opinions: Opinions, candidates: np.ndarray) -> np.ndarray:
    """Estimate the probability of each candidate `(N, K) bool` from all votes: `(N, K) float32`, rows sum to one.

    No candidate has probability zero, because at least one annotator named it.
    """
    rows, classes = candidates.shape
    found = consensus(opinions.said, rows, len(opinions.annotators), classes).posterior
    shares = np.where(candidates, found.clip(min=_DOUBT), 0.0)
    prior: np.ndarray = (shares / shares.sum(1, keepdims=True).clip(min=_LEAST)).astype(np.float32)
    return prior


def _parts(opinions: np.ndarray, annotators: int) -> np.ndarray:
    """Return the weight of each opinion: one, divided by the number of classes the annotator named for the image."""
    _, answer, count = np.unique(opinions[:, 0] * annotators + opinions[:, 1], return_inverse=True, return_counts=True)
    parts: np.ndarray = 1 / count[answer]
    return parts


def _answers(opinions: np.ndarray, rows: int, annotators: int, classes: int) -> csr_matrix:
    """Return the answers as a matrix `(A·K, N)`: rows are annotators and classes, columns are images."""
    places = opinions[:, 1] * classes + opinions[:, 2], opinions[:, 0]
    return csr_matrix((_parts(opinions, annotators), places), shape=(annotators * classes, rows))


def _learned(
    posterior: np.ndarray, answers: csr_matrix, annotators: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """M-step: estimate class frequencies `(K,)` and confusion matrices `(A, K, K)` from the posterior."""
    said = np.asarray(answers @ posterior).reshape(annotators, classes, classes).swapaxes(1, 2)  # true, then answer
    said = said.clip(min=_LEAST)
    return posterior.mean(0), said / said.sum(2, keepdims=True)


def _expected(frequency: np.ndarray, confusion: np.ndarray, answers: csr_matrix) -> np.ndarray:
    """E-step: compute the class probabilities of each image, `(N, K)`, from the confusion matrices."""
    annotators, classes, _ = confusion.shape
    said = np.log(confusion).swapaxes(1, 2).reshape(annotators * classes, classes)
    scores = np.asarray(answers.T @ said) + np.log(frequency.clip(min=_LEAST))
    shares: np.ndarray = np.exp(scores - scores.max(1, keepdims=True))
    normalised: np.ndarray = shares / shares.sum(1, keepdims=True)
    return normalised
