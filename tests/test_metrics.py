import numpy as np
import pytest

from papi.metrics import accuracy, class_similarity


def test_accuracy() -> None:
    assert accuracy(np.array([1, 2, 3, 3]), np.array([1, 2, 0, 3])) == 0.75


@pytest.mark.parametrize(("count", "classes"), [(30, 3), (50, 7)])
def test_similarity_equals_all_pairs(count: int, classes: int) -> None:
    random = np.random.default_rng(count)
    features = random.normal(size=(count, 4))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.arange(count) % classes
    cosine = features @ features.T
    within = np.mean(
        [np.mean([cosine[i, j] for i in range(count) for j in range(count) if labels[i] == labels[j] == k and i != j])
         for k in range(classes)]
    )  # fmt: skip
    between = np.mean(
        [np.mean([cosine[i, j] for i in range(count) for j in range(count) if labels[i] == k and labels[j] == m])
         for k in range(classes) for m in range(k + 1, classes)]
    )  # fmt: skip
    assert class_similarity(features, labels) == pytest.approx((within, between))


def test_similarity_of_perfect_classes() -> None:
    assert class_similarity(np.eye(2)[[0, 0, 1, 1]], np.array([0, 0, 1, 1])) == pytest.approx((1.0, 0.0))


def test_similarity_with_nothing_to_average() -> None:
    within, between = class_similarity(np.eye(2)[[0]], np.array([0]))
    assert np.isnan(within)
    assert np.isnan(between)
