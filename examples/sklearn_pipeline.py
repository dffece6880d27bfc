"""PaPi in scikit-learn: a pipeline, a grid search without true labels, and a pickle.

    python examples/sklearn_pipeline.py

Each of scikit-learn's digits gets up to four candidate labels. True labels are used only to generate these sets and to
measure accuracy at the end.
"""

import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papi import PartialLabelClassifier, covering_rate_scorer


def hesitating(labels: np.ndarray, seed: int) -> list[set[int]]:
    """The true label and up to three wrong ones for each sample."""
    random = np.random.default_rng(seed)
    return [{int(label), *random.choice(10, random.integers(1, 4)).tolist()} for label in labels]


def main(samples: int = 1000, epochs: int = 15) -> float:
    """Test accuracy of the selected model after pickling."""
    X, labels = load_digits(return_X_y=True)
    X, X_test, labels, labels_test = train_test_split(X, labels, train_size=samples, random_state=0)
    y = hesitating(labels, seed=0)

    pipeline = make_pipeline(StandardScaler(), PartialLabelClassifier(epochs=epochs))
    search = GridSearchCV(
        pipeline, {"partiallabelclassifier__method": ["papi", "cc"]}, scoring=covering_rate_scorer, cv=3
    )
    search.fit(X, y)
    for settings, rate in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{settings['partiallabelclassifier__method']}: predictions among the candidates {rate:.1%}")

    classifier = search.best_estimator_[-1]
    print(f"correctly resolved: {(classifier.labels_ == labels).mean():.1%}")
    unsure = int(classifier.confidence_.max(1).argmin())
    print(f"least sure of sample {unsure}: one of {sorted(y[unsure])}, perhaps {classifier.labels_[unsure]}")

    shipped = pickle.loads(pickle.dumps(search.best_estimator_))
    accuracy = float(shipped.score(X_test, labels_test))
    print(f"accuracy on new digits: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
