"""Classes as Gaussian clouds: against scikit-learn's discriminant analysis, and what they make of candidate sets."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from papi.methods import clouds
from papi.methods.clouds import believed, classifier, fitted, matching_scale

CLASSES, EACH, COLUMNS = 3, 40, 6


@pytest.fixture
def features() -> Tensor:
    random = np.random.default_rng(0)
    centres = 2 * random.standard_normal((CLASSES, COLUMNS))
    stretched = random.standard_normal((COLUMNS, COLUMNS))
    noise = random.standard_normal((CLASSES, EACH, COLUMNS)) @ stretched
    return torch.from_numpy((centres[:, None] + noise).reshape(-1, COLUMNS)).float()


@pytest.fixture
def labels() -> Tensor:
    return torch.arange(CLASSES).repeat_interleave(EACH)


def in_parts(features: Tensor, counted: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(features.split(50), counted.split(50), strict=True)


def test_with_known_labels_it_is_discriminant_analysis(features: Tensor, labels: Tensor) -> None:
    known = torch.nn.functional.one_hot(labels).double()
    x = features.double()
    weight, bias = classifier(x.T @ x, known.T @ x, known.sum(0), len(x))
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=clouds.SHRINKAGE).fit(x.numpy(), labels.numpy())
    ours = (x @ weight + bias).softmax(1).numpy()
    # Scikit-learn scales columns before it shrinks their covariance, so the two are close and not equal.
    assert (ours.argmax(1) == theirs.predict(x.numpy())).mean() > 0.95
    shrunk = np.cov((x - known @ (known.T @ x / EACH)).T.numpy(), bias=True)
    shrunk = (1 - clouds.SHRINKAGE) * shrunk + clouds.SHRINKAGE * np.trace(shrunk) / COLUMNS * np.eye(COLUMNS)
    means = (known.T @ x / EACH).numpy()
    distances = [[-0.5 * (row - mean) @ np.linalg.inv(shrunk) @ (row - mean) for mean in means] for row in x.numpy()]
    np.testing.assert_allclose(ours, torch.tensor(distances).softmax(1).numpy(), atol=1e-9)


def test_rounds_resolve_what_the_start_left_open(features: Tensor, labels: Tensor) -> None:
    chance = np.random.default_rng(1)
    sets = torch.from_numpy(chance.random((len(labels), CLASSES)) < 0.6)
    sets[torch.arange(len(labels)), labels] = True
    start = sets / sets.sum(1, keepdim=True)
    found = believed(lambda: in_parts(features, sets), start, rounds=4)
    assert found.dtype == start.dtype
    assert (found[~sets] == 0).all()
    torch.testing.assert_close(found.sum(1), torch.ones(len(labels)))
    mean_of_start = start[torch.arange(len(labels)), labels].mean()
    assert found[torch.arange(len(labels)), labels].mean() > mean_of_start + 0.2
    assert (found.argmax(1) == labels).float().mean() > 0.85


def test_scores_are_scaled_to_the_certainty_of_another_classifier() -> None:
    scores = 50 * torch.randn(200, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(matching_scale(scores, (0.03 * scores).softmax(1)), torch.tensor(0.03).double())
    constant = torch.ones(5, CLASSES, dtype=torch.float64)
    assert torch.isfinite(matching_scale(constant, constant / CLASSES))


def test_the_fitted_classifier_predicts_like_the_gaussians(features: Tensor, labels: Tensor) -> None:
    known = torch.nn.functional.one_hot(labels).float()
    weight, bias = fitted(lambda: in_parts(features, known), known, 0.8 * known + 0.2 / CLASSES)
    x = features.double()
    theirs, offset = classifier(x.T @ x, known.double().T @ x, known.double().sum(0), len(x))
    assert ((x @ weight.T + bias).argmax(1) == (x @ theirs + offset).argmax(1)).all()
    certainty = (x @ weight.T + bias).softmax(1).amax(1).mean()
    assert 0.6 < certainty < 0.95


def test_what_is_known_of_candidates_counts(features: Tensor) -> None:
    sets = torch.ones(len(features), CLASSES)
    sets[0] = torch.tensor([1e-9, 1.0, 1.0])
    found = believed(lambda: in_parts(features, sets), sets / sets.sum(1, keepdim=True), rounds=1)
    assert found[0, 0] < 1e-6


def test_a_class_that_nobody_believes_in_and_features_that_say_nothing() -> None:
    sets = torch.tensor([[True, True, False]] * 5)
    found = believed(lambda: in_parts(torch.zeros(5, 4), sets), sets / 2, rounds=2)
    torch.testing.assert_close(found, sets / 2)
