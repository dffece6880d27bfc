"""The scikit-learn classifier: its rules, its pipelines, every input of `fit`, and that it is the engine itself."""

import importlib
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import sklearn
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor, nn

import papi
from papi import PartialLabelClassifier
from papi import train as run
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.own.image_folder import own_recipe
from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.training.metrics import criteria

QUICK = PartialLabelClassifier("proden", epochs=5, batch_size=32, device="cpu")


@parametrize_with_checks([QUICK])
def test_the_rules_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def table(count: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of three classes that lie apart, their labels, and sets with a wrong label beside in two of three."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    features = np.eye(3)[labels] * 4 + random.normal(size=(count, 3))
    sets = np.eye(3, dtype=bool)[labels]
    sets[np.arange(count), (labels + random.integers(0, 3, count)) % 3] = True
    return features, labels, sets


def test_it_learns_and_resolves() -> None:
    X, labels, sets = table()
    classifier = clone(QUICK).fit(X, sets)
    assert (classifier.predict(X) == labels).mean() > 0.9
    assert (classifier.labels_ == labels).mean() > 0.9
    assert classifier.confidence_.shape == (120, 3)
    np.testing.assert_allclose(classifier.confidence_.sum(1), 1, atol=1e-5)
    assert not classifier.confidence_[~sets].any()
    assert [row["epoch"] for row in classifier.history_] == [0, 1, 2, 3, 4]
    assert classifier.n_features_in_ == 3
    np.testing.assert_allclose(np.linalg.norm(classifier.transform(X), axis=1), 1, atol=1e-5)
    assert len(classifier.get_feature_names_out()) == classifier.transform(X).shape[1]


def test_it_is_the_engine_of_the_command_line() -> None:
    X, _, sets = table()
    classifier = PartialLabelClassifier("pico", epochs=2, random_state=3, options={"queue": 128}).fit(X, sets)
    data = Dataset("same", ("0", "1", "2"), X.astype(np.float32), (), (), candidates=sets).measured()
    config = RunConfig(data="same", method="pico", epochs=2, seed=3, network="mlp", option=("queue=128",))
    *_, finished = run.fit(data, sets, run.settings_for(config, data))
    assert isinstance(finished, run.Finished)
    assert finished.trained is not None
    np.testing.assert_array_equal(classifier.confidence_, finished.trained.arrays.confidence)


@pytest.mark.parametrize("form", ["matrix", "sparse", "sets", "numbers"])
def test_every_form_of_y_gives_the_same_model(form: str) -> None:
    X, _, sets = table()
    names = np.array(["a", "b", "c"])
    y: Any = {
        "matrix": sets,
        "sparse": csr_matrix(sets),
        "sets": [set(names[row].tolist()) for row in sets],
        "numbers": sets.astype(int),
    }[form]
    classes = None if form == "sets" else names
    classifier = clone(QUICK).set_params(classes=classes, epochs=1).fit(X, y)
    reference = clone(QUICK).set_params(epochs=1).fit(X, sets)
    np.testing.assert_array_equal(classifier.predict_proba(X), reference.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), names[reference.predict(X)])
    assert classifier.score(X, y) == reference.score(X, sets)


@pytest.mark.parametrize("form", ["n h w", "n h w c", "n c h w", "float", "colour"])
def test_images(toy_dataset: Dataset, form: str) -> None:
    assert toy_dataset.labels is not None
    images = toy_dataset.samples
    X = {
        "n h w": images[:, 0],
        "n h w c": images.transpose(0, 2, 3, 1),
        "n c h w": images,
        "float": (images / 255).astype(np.float32),
        "colour": images.repeat(3, 1),
    }[form]
    sets = np.eye(4, dtype=bool)[toy_dataset.labels] | np.eye(4, dtype=bool)[(toy_dataset.labels + 1) % 4]
    classifier = PartialLabelClassifier("proden", epochs=1, device="cpu").fit(X, sets)
    assert classifier.n_features_in_ == np.prod(X.shape[1:])
    assert classifier.predict_proba(X[:5]).shape == (5, 4)
    assert classifier.transform(X[:5]).shape[0] == 5
    if form != "colour":
        data = replace(
            toy_dataset, recipe=own_recipe(8, 8), labels=None, test_samples=None, test_labels=None
        ).measured()
        config = RunConfig(data="toy", method="proden", epochs=1, device="cpu")
        *_, finished = run.fit(data, sets, run.settings_for(config, data))
        assert isinstance(finished, run.Finished)
        assert finished.trained is not None
        np.testing.assert_array_equal(classifier.confidence_, finished.trained.arrays.confidence)


def bad_features(row: int, value: float) -> np.ndarray:
    X = table()[0]
    X[row, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (bad_features(7, np.nan), None, r"NaN.* X\[7\] has nan in column 1"),
        (bad_features(9, np.inf), None, r"infinity.* X\[9\] has inf in column 1"),
        (bad_features(2, 1e300), None, r"too large.* X\[2\]"),
        (table()[0][:100], None, r"X has 100 samples, but y has 120: y\[100\] has no sample"),
        (table(130)[0], None, r"X has 130 samples, but y has 120: X\[120\] has no label"),
        (None, [set()] + [{1, 2}] * 119, r"y\[0\] is empty"),
        (None, [{1}] * 118 + [{2}, {3}], r"y\[119\] has the label 3, which is not one of the classes"),
        (None, np.ones((120, 3)), "every label"),
        (None, np.full((120, 3), 0.5), r"y\[0\] has .*0\.5"),
        (np.zeros((120, 2, 2, 2, 2)), None, r"X\[0\] must be .*; got shape \(2, 2, 2, 2\)"),
        (np.full((120, 8, 8), 1.5), None, r"X\[0\] has a pixel of 1\.5"),
        (np.full((120, 8, 8), -1), None, r"X\[0\] has a pixel of -1"),
        (np.full((120, 8, 8), np.nan), None, r"X\[0\] has a pixel of nan"),
        (np.zeros((120, 8, 0), np.uint8), None, "0 pixels"),
        (np.zeros((120, 8, 8, 7), np.uint8), None, r"shape \(120, 8, 8, 7\)"),
        (np.full((120, 3), "a"), None, "could not convert"),
    ],
)
def test_every_wrong_input_names_what_is_wrong(X: Any, y: Any, says: str) -> None:
    features, _, sets = table()
    classifier = clone(QUICK)
    if isinstance(y, list):
        classifier.set_params(classes=[1, 2])
    with pytest.raises(ValueError, match=says):
        classifier.fit(features if X is None else X, sets if y is None else y)
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"method": "pappi"}, "did you mean 'papi'"),
        ({"network": "small"}, "use mlp"),
        ({"options": {"mixpu": False}}, "unknown option 'mixpu': choose from view, "),
        ({"epochs": 0}, "^epochs must be 1 or more"),
        ({"epochs": "10"}, "^epochs must be a whole number or None; got '10'"),
        ({"epochs": 2.5}, "^epochs must be a whole number"),
        ({"epochs": True}, "^epochs must be a whole number"),
        ({"batch_size": 1}, "^batch_size must be 2 or more"),
        ({"learning_rate": "fast"}, "^learning_rate must be a number"),
        ({"learning_rate": -1.0}, "^learning_rate must be .*0 or more; got -1"),
        ({"holdout": 2}, "^holdout must be"),
        ({"threads": 0}, "^threads must be"),
        ({"select": "covering-rate", "holdout": 0.0}, "^select covering-rate needs a validation set: set holdout"),
        ({"separator": "|"}, "no strings to split"),
    ],
)
def test_wrong_parameters_are_told_in_the_words_of_the_estimator(parameters: dict[str, Any], says: str) -> None:
    X, _, sets = table()
    with pytest.raises((ValueError, TypeError), match=says) as caught:
        clone(QUICK).set_params(**parameters).fit(X, sets)
    assert not re.search(r"--\w", str(caught.value)) or "method" in parameters or "options" in parameters


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_columns_of_a_table_are_the_classes(library: str) -> None:
    X, labels, sets = table()
    names = ["rose", "tulip", "lily"]
    frame = importlib.import_module(library).DataFrame({name: sets[:, k] for k, name in enumerate(names)})
    classifier = clone(QUICK).fit(X, frame)
    assert classifier.classes_.tolist() == names
    np.testing.assert_array_equal(classifier.confidence_, clone(QUICK).fit(X, sets).confidence_)
    assert classifier.score(X, frame[["lily", "rose", "tulip"]]) == classifier.score(X, frame)
    assert classifier.score(X, np.array(names)[labels]) > 0.9


def test_texts_with_several_labels_are_split_when_asked_and_refused_else() -> None:
    X, _, sets = table()
    names = np.array(["rose", "tulip", "lily"])
    texts = pandas.Series(["|".join(names[row]) for row in sets])
    with pytest.raises(ValueError, match=r"y\[\d+\] is '.*\|.*', which looks like several labels.*separator='\|'"):
        clone(QUICK).fit(X, texts)
    classifier = clone(QUICK).set_params(separator="|").fit(X, texts)
    assert classifier.classes_.tolist() == sorted(names)
    assert classifier.score(X, texts) == papi.covering_rate_scorer(classifier, X, texts) > 0.9
    with pytest.raises(ValueError, match="separator=','"):
        clone(QUICK).fit(X, [", ".join(names[row]) for row in sets])
    one_label = [name if name != "lily" else "rose|tulip" for name in names[np.arange(120) % 3]]
    chosen = clone(QUICK).set_params(classes=["rose", "tulip", "rose|tulip"]).fit(X, one_label)
    assert chosen.predict(X).shape == (120,)


def test_training_on_sets_and_scoring_on_known_truth() -> None:
    X, labels, sets = table()
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            clone(QUICK), X, sets, scoring=papi.true_accuracy_scorer, params={"truth": labels}, cv=2
        )
    folds = [fold for _, fold in KFold(2).split(X)]
    for score, test in zip(scores, folds, strict=True):
        rest = np.setdiff1d(np.arange(120), test)
        assert score == (clone(QUICK).fit(X[rest], sets[rest]).predict(X[test]) == labels[test]).mean()


def test_images_of_another_shape_are_refused(toy_dataset: Dataset) -> None:
    classifier = clone(QUICK).set_params(epochs=1).fit(toy_dataset.samples[:, 0], toy_dataset.labels)
    with pytest.raises(ValueError, match=r"fitted with \(1, 8, 8\)"):
        classifier.predict(np.zeros((2, 9, 9), np.uint8))
    with pytest.raises(ValueError, match=r"fitted with \(1, 8, 8\)"):
        classifier.predict(np.zeros((2, 64)))


def test_score_and_scorers() -> None:
    X, labels, sets = table()
    classifier = clone(QUICK).set_params(epochs=1).fit(X, sets)
    assert classifier.score(X, labels) == (classifier.predict(X) == labels).mean()
    found = criteria(classifier.predict_proba(X), sets)
    assert classifier.score(X, sets) == papi.covering_rate_scorer(classifier, X, sets) == found["covering_rate"]
    assert papi.approximated_accuracy_scorer(classifier, X, sets) == found["approximated_accuracy"]
    assert papi.candidate_likelihood_scorer(classifier, X, sets) == found["candidate_likelihood"]
    weights = (classifier.predict(X) == labels).astype(float) + 1e-9
    assert classifier.score(X, labels, sample_weight=weights) > 0.999


def test_weights_of_samples_are_refused() -> None:
    X, _, sets = table()
    assert not has_fit_parameter(QUICK, "sample_weight"), "scikit-learn would pass some"
    with pytest.raises(TypeError, match=r"not support sample_weight.*numpy.repeat"):
        clone(QUICK).fit(X, sets, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="unexpected argument 'weights'"):
        clone(QUICK).fit(X, sets, weights=np.ones(len(X)))


def test_cross_validation_and_grid_search_in_a_pipeline() -> None:
    X, _, sets = table()
    label_sets = [set(np.flatnonzero(row).tolist()) for row in sets]
    pipeline = make_pipeline(StandardScaler(), clone(QUICK).set_params(epochs=2))
    rates = cross_val_score(pipeline, X, label_sets, scoring=papi.covering_rate_scorer, cv=2)
    assert rates.shape == (2,)
    assert (rates > 0.5).all()
    grid = {"partiallabelclassifier__learning_rate": [1e-6, 0.05]}
    search = GridSearchCV(pipeline, grid, scoring=papi.approximated_accuracy_scorer, cv=2).fit(X, sets)
    assert search.best_params_ == {"partiallabelclassifier__learning_rate": 0.05}
    assert search.predict(X).shape == (120,)


def test_a_fitted_model_survives_pickling() -> None:
    X, _, sets = table()
    classifier = clone(QUICK).set_params(epochs=2, classes=["x", "y", "z"], calibrate=True, holdout=0.2).fit(X, sets)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(again.labels_, classifier.labels_)
    assert again.temperature_ == classifier.temperature_ != 1
    assert again.get_params() == classifier.get_params()
    unfitted = clone(classifier)
    assert not hasattr(unfitted, "classes_")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        unfitted.predict(X)


def test_warm_start_goes_on_from_the_weights() -> None:
    X, labels, sets = table()
    classifier = PartialLabelClassifier("cc", epochs=2, learning_rate=0.02, device="cpu", warm_start=True)
    losses = []
    for _ in range(3):
        classifier.fit(X, sets)
        losses.append(classifier.history_[0]["loss"])
    assert losses[0] > losses[1] > losses[2]
    cold = clone(classifier).fit(X, sets)
    assert cold.history_[0]["loss"] == losses[0]
    with pytest.raises(ValueError, match="warm_start=False"):
        classifier.fit(X[:, :2], sets)
    with pytest.raises(ValueError, match="other classes"):
        classifier.fit(X, labels % 2)
    with pytest.raises(ValueError, match="different network, classes or method"):
        classifier.set_params(method="papi").fit(X, sets)


def test_choosing_an_epoch() -> None:
    X, _, sets = table()
    classifier = clone(QUICK).set_params(select="covering-rate", holdout=0.25).fit(X, sets)
    rates = [row["covering_rate"] for row in classifier.history_]
    assert classifier.picked_epoch_ == max(n for n, rate in enumerate(rates) if rate == max(rates))
    assert len(classifier.labels_) == 120


def test_random_state() -> None:
    X, _, sets = table()
    one, same, other = (clone(QUICK).set_params(epochs=1, random_state=seed).fit(X, sets) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert (one.predict_proba(X) != other.predict_proba(X)).any()
    drawn = clone(QUICK).set_params(epochs=1, random_state=np.random.RandomState(0)).fit(X, sets)
    assert (drawn.predict_proba(X) != one.predict_proba(X)).any()


def test_progress_is_told_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    X, _, sets = table()
    clone(QUICK).set_params(epochs=2).fit(X, sets)
    assert capsys.readouterr().out == ""
    clone(QUICK).set_params(epochs=2, verbose=1, holdout=0.2).fit(X, sets)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["epoch 1", "epoch 2"]
    assert "covering rate" in lines[0]


class Tiny(nn.Module):
    """Three features to four, with a bias that shows whether it was trained."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layer = nn.Linear(input_shape[0], 4)

    def forward(self, batch: Tensor) -> Tensor:
        return self.layer(batch).relu()


class TestOwnNetwork:
    def test_a_factory(self) -> None:
        X, _, sets = table()
        classifier = clone(QUICK).set_params(network=Tiny).fit(X, sets)
        assert classifier.predict_proba(X).shape == (len(X), 3)
        assert isinstance(classifier._model.network.encoder, Tiny)

    def test_a_module_stays_as_it_was(self) -> None:
        """Every fit trains a copy, so that two fits give the same."""
        X, _, sets = table()
        torch.manual_seed(3)
        module = Tiny((3,))
        before = {name: value.clone() for name, value in module.state_dict().items()}
        classifier = PartialLabelClassifier("proden", network=module, epochs=1, random_state=0)
        first, second = (classifier.fit(X, sets).predict_proba(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
        assert not torch.equal(classifier._model.network.encoder.layer.weight, module.layer.weight)

    def test_a_module_is_pickled_with_the_classifier(self) -> None:
        X, _, sets = table()
        classifier = PartialLabelClassifier("proden", network=Tiny((3,)), epochs=1).fit(X, sets)
        again = pickle.loads(pickle.dumps(classifier))
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))

    def test_a_name(self) -> None:
        X, _, sets = table()
        named = PartialLabelClassifier("cc", network=f"{__name__}:Tiny", epochs=1).fit(X, sets)
        itself = PartialLabelClassifier("cc", network=Tiny, epochs=1).fit(X, sets)
        np.testing.assert_array_equal(named.predict_proba(X), itself.predict_proba(X))

    @pytest.mark.parametrize(
        ("network", "says"),
        [
            ("mpl", "did you mean 'mlp'"),
            ("nowhere:network", "cannot be imported"),
            (lambda shape: nn.Conv2d(1, 1, 1), "<lambda>"),
            (lambda shape: "no module", "returns str"),
        ],
    )
    def test_one_that_does_not_fit(self, network: Any, says: str) -> None:
        X, _, sets = table()
        with pytest.raises(ValueError, match=says):
            PartialLabelClassifier("cc", network=network, epochs=1).fit(X, sets)

    def test_a_folder_wants_a_network_that_can_be_built_again(self, toy_dataset: Dataset, tmp_path: Path) -> None:
        sets = np.ones((96, 4), bool)
        sets[:48, 0] = False
        settings = run.settings_for(RunConfig(method="cc", epochs=1, device="cpu"), toy_dataset)
        with pytest.raises(UserError, match="cannot be rebuilt"):
            list(run.fit(toy_dataset, sets, settings, RunFolder(tmp_path / "run"), network=lambda shape: nn.Flatten()))
        assert not (tmp_path / "run").exists()
