"""Checks that the arrays of a finished run match its samples. Arrays that do not are ignored and reported."""

from dataclasses import dataclass

import numpy as np

from papi.data.packed_rows import Matrix, PackedRows
from papi.runs.schema import Arrays

LARGEST = 1e30  # largest coordinate: the map squares them


@dataclass(frozen=True)
class Points:
    """Embeddings of some of the samples, and of the prototypes."""

    vectors: np.ndarray  # (E, d) float
    index: np.ndarray  # (E,) int: positions of the samples
    prototypes: np.ndarray  # (K, d) float, or (0, d) if there are none


@dataclass(frozen=True)
class Kept:
    """The arrays of a finished run that match its samples."""

    confidence: Matrix | None = None  # (N, K) float
    second_opinion: np.ndarray | None = None  # (N,) float
    test_probabilities: np.ndarray | None = None  # (M, K) float
    points: Points | None = None  # test samples
    training_points: Points | None = None  # if there are no test samples


def fit(
    arrays: Arrays, candidates: np.ndarray | None, classes: int, test_samples: int | None
) -> tuple[Kept, list[str]]:
    """Return the arrays that match, and a message for each that does not.

    `candidates` are the candidate sets `(N, K)` of the training samples. `test_samples` is None if their number is
    unknown.
    """
    problems: list[str] = []
    confidence, opinion = _of_training(arrays, candidates, problems)
    probabilities = arrays.test_probabilities
    if probabilities is not None and not _are_probabilities(probabilities, test_samples, classes):
        problems.append(
            "The test results in arrays.npz do not match the test images, so confusions, calibration and the map of "
            "images are not shown."
        )
        probabilities = None
    found = arrays.embedding, arrays.embedding_index
    points = None if probabilities is None else _points(arrays, *found, len(probabilities), classes, problems)
    found, count = (arrays.training_embedding, arrays.training_index), 0 if candidates is None else len(candidates)
    trained = None if confidence is None else _points(arrays, *found, count, classes, problems)
    return Kept(confidence, opinion, probabilities, points, trained), problems


def _of_training(
    arrays: Arrays, candidates: np.ndarray | None, problems: list[str]
) -> tuple[Matrix | None, np.ndarray | None]:
    """Return the confidence and the second opinion, which need the candidate sets."""
    if candidates is None:
        return None, None
    confidence, opinion = arrays.confidence, arrays.second_opinion
    fits = confidence.fits(candidates) if isinstance(confidence, PackedRows) else confidence.shape == candidates.shape
    if not fits:
        problems.append(
            f"The confidence in arrays.npz has shape {confidence.shape}, but the candidate sets have "
            f"{candidates.shape}, so resolved labels are not shown."
        )
        return None, None
    if opinion is not None and not (opinion.shape == (len(candidates),) and opinion.dtype.kind == "f"):
        problems.append("The second opinions in arrays.npz do not match the images, which are ranked without them.")
        opinion = None
    return confidence, opinion


def _are_probabilities(values: np.ndarray, samples: int | None, classes: int) -> bool:
    if values.ndim != 2 or values.dtype.kind != "f" or not len(values) or values.shape[1] != classes:
        return False
    return samples in (None, len(values)) and bool(np.isfinite(values).all() and (values >= 0).all())


def _points(
    arrays: Arrays,
    vectors: np.ndarray | None,
    index: np.ndarray | None,
    samples: int,
    classes: int,
    problems: list[str],
) -> Points | None:
    if vectors is None or index is None:
        return None
    fits = _are_vectors(vectors) and index.shape == (len(vectors),) and index.dtype.kind in "iu"
    if not fits or not ((index >= 0) & (index < samples)).all():
        problems.append("The embedding in arrays.npz does not match the images, so the map of images is not shown.")
        return None
    none = np.empty((0, vectors.shape[1]), vectors.dtype)
    prototypes = none if arrays.prototypes is None else arrays.prototypes
    if arrays.prototypes is not None and not (
        _are_vectors(prototypes) and prototypes.shape == (classes, vectors.shape[1])
    ):
        problems.append("The prototypes in arrays.npz do not match the embedding, so the map does not show them.")
        prototypes = none
    return Points(vectors, index, prototypes)


def _are_vectors(values: np.ndarray) -> bool:
    return values.ndim == 2 and values.dtype.kind == "f" and bool(values.size and (np.abs(values) < LARGEST).all())
