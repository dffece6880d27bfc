"""The map of images."""

from dataclasses import replace

import numpy as np
import pytest

from papi.report.embedding import TSNE_LEAST, TSNE_POINTS, find_map, plane
from papi.report.fitting import Kept, Points
from papi.report.plots import COLOURS
from papi.report.run import Run
from runs_in_memory import run_of


def embedded(count: int, classes: int = 3, prototypes: bool = True, width: int = 5) -> Run:
    """Test images around a prototype of their class each."""
    random = np.random.default_rng(0)
    run = run_of([[1.0] * classes])
    centres = 10 * random.normal(size=(classes, width))
    labels = np.arange(count) % classes
    vectors = centres[labels] + random.normal(size=(count, width))
    stars = centres if prototypes else np.empty((0, width))
    run.kept = Kept(test_probabilities=np.eye(classes)[labels], points=Points(vectors, np.arange(count), stars))
    return run


def test_a_map_of_a_few_images() -> None:
    found = find_map(embedded(12))
    assert found is not None
    assert found.technique == "PCA"
    assert found.places.shape == (12, 2)
    assert found.groups.tolist() == [0, 1, 2] * 4
    assert found.names == ["a", "b", "c"]
    assert found.stars.shape == (3, 2)
    assert found.star_groups.tolist() == [0, 1, 2]


def test_neighbours_stay_neighbours() -> None:
    found = find_map(embedded(TSNE_LEAST + 10))
    assert found is not None
    assert found.technique == "t-SNE"
    distance = np.linalg.norm(found.places[:, None] - found.places, axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (found.groups[distance.argmin(1)] == found.groups).mean() > 0.9


def test_a_method_without_prototypes_has_no_stars() -> None:
    found = find_map(embedded(12, prototypes=False))
    assert found is not None
    assert found.stars.shape == (0, 2)


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_images_for_a_map(count: int) -> None:
    assert find_map(embedded(count)) is None


def test_no_embedding_no_map() -> None:
    assert find_map(run_of([[1.0, 1.0]])) is None


def test_classes_beyond_the_colours_are_grey() -> None:
    found = find_map(embedded(48, classes=COLOURS + 2))
    assert found is not None
    assert len(found.names) == COLOURS
    assert (found.groups == -1).sum() == 2 * 48 // (COLOURS + 2)
    assert (found.star_groups == -1).sum() == 2


def test_of_many_images_a_part_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("papi.report.embedding.TSNE_POINTS", 20)
    found = find_map(embedded(100))
    assert found is not None
    assert len(found.places) == 20 < TSNE_POINTS


@pytest.mark.parametrize("shape", [(3, 1), (3, 5), (4, 2), (10, 8), (60, 2), (60, 4)])
def test_the_same_vectors_give_the_same_places(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    technique, places = plane(vectors)
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()
    assert technique == plane(vectors)[0]
    assert np.array_equal(places, plane(vectors)[1])


def test_the_plane_of_a_plane_keeps_distances() -> None:
    vectors = np.random.default_rng(2).normal(size=(20, 2)).astype(np.float32)
    _, places = plane(vectors)
    before, after = (np.linalg.norm(each[:, None] - each, axis=2) for each in (vectors, places))
    assert np.allclose(before, after, atol=1e-4)


@pytest.mark.parametrize("count", [10, TSNE_LEAST + 10])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-30])
def test_a_network_that_finds_all_images_the_same(count: int, value: float) -> None:
    _, places = plane(np.full((count, 5), value, np.float32))
    assert np.abs(places).max() < 1e-6


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e6])
def test_the_size_of_vectors_does_not_matter(scale: float) -> None:
    vectors = np.random.default_rng(3).normal(size=(TSNE_LEAST + 10, 4))
    _, places = plane((scale * vectors).astype(np.float32))
    assert np.isfinite(places).all()


def test_images_in_one_direction() -> None:
    """To the cosine they are all the same, although they are apart."""
    vectors = np.linspace(1, 2, TSNE_LEAST + 10)[:, None] * np.ones(4)
    _, places = plane(vectors.astype(np.float32))
    assert np.isfinite(places).all()


def test_training_images_by_their_resolved_labels_where_there_are_no_tests() -> None:
    run = run_of([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    run.kept = replace(run.kept, training_points=Points(np.eye(4)[:, :3], np.array([3, 0, 1, 2]), np.empty((0, 3))))
    found = find_map(run)
    assert found is not None
    assert found.kind == "training"
    assert found.groups.tolist() == [1, 0, 1, 0]
