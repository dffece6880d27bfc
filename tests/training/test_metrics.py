import numpy as np
import pytest

from papi.training.metrics import accuracy, class_similarity, criteria, picked


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


@pytest.mark.parametrize(("count", "classes"), [(40, 3), (25, 8)])
def test_criteria_equal_one_sample_at_a_time(count: int, classes: int) -> None:
    random = np.random.default_rng(count)
    probabilities = random.dirichlet(np.full(classes, 0.3), count).astype(np.float32)
    sets = random.random((count, classes)) < 0.5
    sets[np.arange(count), random.integers(0, classes, count)] = True
    covered, credit, likelihood = [], [], []
    for p, candidates in zip(probabilities.astype(float), sets, strict=True):
        answer = max(range(classes), key=lambda k: p[k])
        inside = sum(p[k] for k in range(classes) if candidates[k])
        covered.append(1.0 if candidates[answer] else 0.0)
        # One minus the loss that is expected when the truth is drawn from the candidates as the model weighs them.
        credit.append(1 - sum(p[k] / inside for k in range(classes) if candidates[k] and k != answer))
        likelihood.append(np.log(inside))
    assert criteria(probabilities, sets) == pytest.approx(
        {
            "covering_rate": np.mean(covered),
            "approximated_accuracy": np.mean(credit),
            "candidate_likelihood": np.mean(likelihood),
        }
    )


def test_criteria_where_candidates_have_no_probability() -> None:
    found = criteria(np.array([[1.0, 0.0]], np.float32), np.array([[False, True]]))
    assert (found["covering_rate"], found["approximated_accuracy"]) == (0, 0)
    assert np.isfinite(found["candidate_likelihood"])


@pytest.mark.parametrize(
    ("values", "position"), [([1, 3, 2], 1), ([3, 1, 3], 2), ([np.nan, 1, np.nan], 1), ([-2.0, -1.0], 1)]
)
def test_the_last_of_the_highest_is_picked(values: list[float], position: int) -> None:
    assert picked(values) == position
