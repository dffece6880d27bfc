"""Measures of a classifier for scikit-learn's `cross_val_score` and `GridSearchCV`, with and without true labels."""

from typing import Any

import numpy as np
from sklearn import config_context  # type: ignore[import-untyped]
from sklearn.metrics import make_scorer  # type: ignore[import-untyped]

from papi.data.own.targets import candidates_among, split_texts
from papi.training.metrics import criteria


def covering_rate_scorer(estimator: Any, X: Any, y: Any) -> float:
    """How often the answer is among the candidates; for `cross_val_score` and `GridSearchCV`."""
    return _criterion("covering_rate", estimator, X, y)


def approximated_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """The same, each answer counted as the model weighs it among the candidates."""
    return _criterion("approximated_accuracy", estimator, X, y)


def candidate_likelihood_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Mean logarithm of the probability that falls on the candidates."""
    return _criterion("candidate_likelihood", estimator, X, y)


def _criterion(name: str, estimator: Any, X: Any, y: Any) -> float:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator  # of a pipeline
    sets = candidates_among(split_texts(y, getattr(last, "separator", None)), np.asarray(estimator.classes_))
    return criteria(estimator.predict_proba(X), sets)[name]


def _true_accuracy(y: Any, predicted: np.ndarray, *, truth: Any) -> float:
    """`y` holds the candidate sets, which training needs and this does not."""
    return float((predicted == np.asarray(truth)).mean())


with config_context(enable_metadata_routing=True):  # asking for `truth` is possible only where routing is on
    true_accuracy_scorer = make_scorer(_true_accuracy).set_score_request(truth=True)
"""Accuracy against `truth`, which scikit-learn routes past training: `params={"truth": labels}`."""
