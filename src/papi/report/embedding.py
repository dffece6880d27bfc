"""Computes a two-dimensional map of image embeddings."""

from dataclasses import dataclass

import numpy as np

from papi.report.plots import COLOURS
from papi.report.run import Run

TSNE_POINTS = 1500  # t-SNE takes seconds for this many points; larger sets are subsampled
TSNE_LEAST = 50  # with fewer points, PCA is used


@dataclass(frozen=True)
class Map:
    """Positions of images and prototypes, and the colour group of each; −1 for classes without a colour."""

    kind: str  # "test" or "training"
    technique: str
    places: np.ndarray  # (S, 2)
    groups: np.ndarray  # (S,)
    names: list[str]  # of the groups
    stars: np.ndarray  # (P, 2) prototypes
    star_groups: np.ndarray  # (P,)


def find_map(run: Run) -> Map | None:
    """Return the map of images, coloured by predicted label; None if the run has no embeddings.

    It shows test images if there are any, otherwise training images with their resolved labels.
    """
    points, probabilities, kind = run.kept.points, run.kept.test_probabilities, "test"
    if points is not None and probabilities is not None:
        given = probabilities.argmax(1)
    elif run.kept.training_points is not None and run.resolved is not None:
        points, given, kind = run.kept.training_points, run.resolved.label, "training"
    if points is None or len(points.vectors) < 3:
        return None
    some = np.linspace(0, len(points.vectors) - 1, min(TSNE_POINTS, len(points.vectors)), dtype=int)
    labels = given[points.index[some]]
    shown = np.argsort(-np.bincount(labels, minlength=len(run.class_names)), kind="stable")[:COLOURS]
    shown = np.sort(shown[np.isin(shown, labels)])
    technique, places = plane(np.concatenate([points.vectors[some], points.prototypes]).astype(np.float32))
    return Map(
        kind,
        technique,
        places[: len(some)],
        _groups(labels, shown),
        [run.class_name(int(k)) for k in shown],
        places[len(some) :],
        _groups(np.arange(len(points.prototypes)), shown),
    )


def _groups(labels: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Return the position of each label among those shown; −1 for the others."""
    groups = np.full(max(int(labels.max(initial=0)), int(shown.max(initial=0))) + 1, -1)
    groups[shown] = np.arange(len(shown))
    numbers: np.ndarray = groups[labels]
    return numbers


def plane(vectors: np.ndarray) -> tuple[str, np.ndarray]:
    """Project vectors `(n, d)` to two dimensions and return the technique. The result is deterministic."""
    places = _principal(vectors)
    spread = places[:, 0].std()
    # t-SNE starts from these positions divided by their spread, which is zero if all images are identical.
    if len(vectors) < TSNE_LEAST or vectors.shape[1] < 3 or not spread > np.finfo(np.float32).tiny:
        return "PCA", places
    from sklearn.manifold import TSNE  # takes a second to import

    start = (1e-4 / spread * places).astype(np.float32)
    tsne = TSNE(metric="cosine", init=start, perplexity=min(30, len(vectors) // 4), random_state=0)
    found: np.ndarray = tsne.fit_transform(vectors)
    return "t-SNE", found


def _principal(vectors: np.ndarray) -> np.ndarray:
    """Project vectors `(n, d)` to their first two principal components, `(n, 2)`."""
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:2]
    places = np.zeros((len(vectors), 2))
    places[:, : len(directions)] = centred @ directions.T
    return places
