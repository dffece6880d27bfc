"""Scorers for scikit-learn's `cross_val_score` and `GridSearchCV`, with and without true labels."""

from typing import Any

import numpy as np
from sklearn import config_context  # type: ignore[import-untyped]
from sklearn.metrics import make_scorer  # type: ignore[import-untyped]

from papi.data.own.targets import candidates_among, split_texts
from papi.training.metrics import criteria


def covering_rate_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Score how often the predicted label is among the candidates of held-out samples.

    Pass it as `scoring=` to scikit-learn's `cross_val_score` or `GridSearchCV`. It needs no true labels.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from papi import PartialLabelClassifier, covering_rate_scorer
    >>> X = [[0.0], [0.1], [0.2], [0.9], [1.0], [1.1]]
    >>> y = [{"low"}, {"low", "high"}, {"low"}, {"high"}, {"low", "high"}, {"high"}]
    >>> scores = cross_val_score(PartialLabelClassifier(epochs=30), X, y, scoring=covering_rate_scorer, cv=2)
    >>> len(scores)
    2
    """
    return _criterion("covering_rate", estimator, X, y)


def approximated_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Score like `covering_rate_scorer`, with each prediction weighted by its probability among the candidates.

    A prediction that is a candidate counts by its probability relative to the other candidates.
    """
    return _criterion("approximated_accuracy", estimator, X, y)


def candidate_likelihood_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Score by the mean logarithm of the summed probability of the candidates: 0 at best."""
    return _criterion("candidate_likelihood", estimator, X, y)


def _criterion(name: str, estimator: Any, X: Any, y: Any) -> float:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator  # of a pipeline
    sets = candidates_among(split_texts(y, getattr(last, "separator", None)), np.asarray(estimator.classes_))
    return criteria(estimator.predict_proba(X), sets)[name]


def _true_accuracy(y: Any, predicted: np.ndarray, *, truth: Any) -> float:
    """Accuracy against `truth`. The candidate sets `y` are not used."""
    return float((predicted == np.asarray(truth)).mean())


with config_context(enable_metadata_routing=True):  # `truth` can be requested only if routing is enabled
    true_accuracy_scorer = make_scorer(_true_accuracy).set_score_request(truth=True)
"""Accuracy against `truth`, which scikit-learn passes to the scorer but not to training: `params={"truth": labels}`."""
