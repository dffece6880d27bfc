"""A map of images: their embedding in the plane, where images that the network finds alike lie close together."""

from dataclasses import dataclass

import numpy as np

from papi.report.plots import COLOURS
from papi.report.reading import Run

TSNE_POINTS = 1500  # neighbours are laid out for so many in seconds; of more, a part is shown
TSNE_LEAST = 50  # fewer points have no neighbourhoods to speak of: two directions of largest spread do


@dataclass(frozen=True)
class Map:
    """Places of images and prototypes, and the colour group of each: its number, or −1 for classes without one."""

    technique: str
    places: np.ndarray  # (S, 2)
    groups: np.ndarray  # (S,)
    names: list[str]  # of the groups
    stars: np.ndarray  # (P, 2) prototypes
    star_groups: np.ndarray  # (P,)


def find_map(run: Run) -> Map | None:
    """The embedded test images, coloured by the label they are given; None where the run has kept none."""
    embedding, index = run.arrays.get("embedding"), run.arrays.get("embedding_index")
    probabilities = run.arrays.get("test_probabilities")
    if embedding is None or index is None or probabilities is None or len(embedding) < 3:
        return None
    if len(index) != len(embedding) or index.max() >= len(probabilities) or not np.isfinite(embedding).all():
        return None
    some = np.linspace(0, len(embedding) - 1, min(TSNE_POINTS, len(embedding)), dtype=int)
    labels = probabilities[index[some]].argmax(1)
    shown = np.argsort(-np.bincount(labels, minlength=len(run.class_names)), kind="stable")[:COLOURS]
    shown = np.sort(shown[np.isin(shown, labels)])
    prototypes = _prototypes(run, embedding.shape[1])
    technique, places = plane(np.concatenate([embedding[some], prototypes]).astype(np.float32))
    return Map(
        technique,
        places[: len(some)],
        _groups(labels, shown),
        [run.class_name(int(k)) for k in shown],
        places[len(some) :],
        _groups(np.arange(len(prototypes)), shown),
    )


def _prototypes(run: Run, width: int) -> np.ndarray:
    """Prototypes `(K, d)` that lie in the same space, none otherwise."""
    found = run.arrays.get("prototypes")
    fits = found is not None and found.ndim == 2 and found.shape == (len(run.class_names), width)
    return found if found is not None and fits and np.isfinite(found).all() else np.empty((0, width))


def _groups(labels: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The number of each label among those shown, −1 for the rest."""
    groups = np.full(max(int(labels.max(initial=0)), int(shown.max(initial=0))) + 1, -1)
    groups[shown] = np.arange(len(shown))
    numbers: np.ndarray = groups[labels]
    return numbers


def plane(vectors: np.ndarray) -> tuple[str, np.ndarray]:
    """Vectors `(n, d)` laid out in two dimensions, and how: the same vectors always give the same picture."""
    from sklearn.decomposition import PCA  # type: ignore[import-untyped]
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    if len(vectors) < TSNE_LEAST or vectors.shape[1] < 3:
        places = np.zeros((len(vectors), 2))
        parts = min(2, *vectors.shape)
        places[:, :parts] = PCA(parts, random_state=0).fit_transform(vectors)
        return "PCA", places
    tsne = TSNE(metric="cosine", init="pca", perplexity=min(30, len(vectors) // 4), random_state=0)
    found: np.ndarray = tsne.fit_transform(vectors)
    return "t-SNE", found
