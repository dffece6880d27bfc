"""PaPi as a scikit-learn classifier, with the same training engine as the command line."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]
from torch import nn

from papi.config import OptimConfig, RunConfig, Select, Tune, Values, as_typed
from papi.data.dataset import Dataset
from papi.data.images.arrays import as_image_array
from papi.data.images.photos import Photos
from papi.data.own.given import sources_of
from papi.data.own.image_folder import own_recipe
from papi.data.own.targets import Targets, candidates_among, is_single, read_targets, split_texts
from papi.errors import UserError
from papi.inference import Model
from papi.networks import Factory, title
from papi.networks.pretrained import Pretrained, adopt, is_pretrained
from papi.runs.parent import Parent
from papi.runs.schema import EpochRow
from papi.setup.encoder import find_encoder, seen_by, with_tuning
from papi.train import Event, Finished, fit, head_first, settings_for
from papi.training.engine import EpochEnded


class PartialLabelClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for samples with several candidate labels each, one of which is true.

    Parameters
    ----------
    method : str, default="papi"
        Name of a method (see `papi methods`), or `package.module:Class`.
    network : str, callable, torch.nn.Module or None, default=None
        Name of a network: small, resnet18 … for images, mlp for features; `package.module:factory`; a function that
        takes the shape of a sample and returns a module from batches to features `(B, D)`; or such a module, which is
        copied by every fit. With a pretrained encoder (timm:NAME, hf:NAME or torchvision:NAME), X contains photos:
        paths, Pillow images, or uint8 arrays of any size. None uses the network of the preset.
    tune : {"head", "all"} or None, default=None
        With a pretrained encoder: train only a head on its features, or fine-tune the encoder afterwards. None trains
        a head on encoders of timm, transformers and torchvision. With a value, `package.module:factory` and modules
        are pretrained encoders, too; their attributes `input_size`, `mean`, `std` and `interpolation` say how photos
        are prepared.
    epochs : int or None, default=None
        Number of training epochs. None uses the value of the preset.
    batch_size : int or None, default=None
        Number of samples per step. None uses the value of the preset.
    learning_rate : float or None, default=None
        Peak learning rate. None uses the value of the preset.
    preset : {"quick", "paper"}, default="quick"
        Source of the default settings.
    options : mapping or None, default=None
        Settings of the method, as listed by `papi methods NAME`: `{"temperature": 0.5}`.
    classes : sequence or None, default=None
        Names of the columns of a candidate matrix, or all labels. None uses the column names of a table, or the labels
        that occur in y.
    separator : str or None, default=None
        Separator of the labels if y contains strings: `"|"` for `rose|tulip`.
    holdout : float or None, default=None
        Fraction of the samples to hold out as a validation set. None holds samples out only if `select` needs them.
    select : {"last", "covering-rate", "approximated-accuracy"}, default="last"
        Which epoch's model to keep: the last one, or the best one by a criterion on the validation set.
    calibrate : bool, default=False
        Fit a temperature on candidate labels, so that probabilities match accuracy.
    device : str, default="auto"
        Device to train on: cpu, cuda, cuda:1 …; auto uses a GPU if there is one.
    threads : int or None, default=None
        Number of CPU threads. None uses one to train on features with a network of the package, and otherwise keeps
        the setting of torch.
    random_state : int, RandomState or None, default=0
        Random seed: the same number gives the same model.
    warm_start : bool, default=False
        Start `fit` from the weights of the previous call.
    verbose : int, default=0
        1 prints a line per epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of all columns below.
    labels_ : ndarray of shape (n,)
        The resolved label of each training sample.
    confidence_ : ndarray of shape (n, K)
        The confidence in each label. Rows sum to one. Labels outside the candidates have zero confidence, unless the
        method allows for missing true labels.
    history_ : list of dict
        The metrics of each epoch.
    n_features_in_ : int
        Number of values in a sample.

    Examples
    --------
    >>> from papi import PartialLabelClassifier
    >>> X = [[0.0], [0.1], [0.2], [0.9], [1.0], [1.1]]
    >>> y = [{"low"}, {"low", "high"}, {"low"}, {"high"}, {"low", "high"}, {"high"}]
    >>> classifier = PartialLabelClassifier(epochs=50).fit(X, y)
    >>> classifier.predict([[0.05], [1.05]]).tolist()
    ['low', 'high']
    >>> classifier.confidence_.shape
    (6, 2)
    """

    def __init__(
        self,
        method: str = "papi",
        *,
        network: str | Factory | nn.Module | None = None,
        tune: Tune | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        preset: str = "quick",
        options: Mapping[str, Any] | None = None,
        classes: Sequence[Hashable] | None = None,
        separator: str | None = None,
        holdout: float | None = None,
        select: Select = "last",
        calibrate: bool = False,
        device: str = "auto",
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.network = network
        self.tune = tune
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.preset = preset
        self.options = options
        self.classes = classes
        self.separator = separator
        self.holdout = holdout
        self.select = select
        self.calibrate = calibrate
        self.device = device
        self.threads = threads
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **unknown: Any) -> "PartialLabelClassifier":
        """Train on samples and their candidate labels.

        Parameters
        ----------
        X : array-like
            Images `(n, H, W)`, `(n, H, W, C)` or `(n, C, H, W)`, or features `(n, d)`. Pixels are uint8, or floats from
            0 to 1.
        y : array-like, sequence or table
            Candidate labels: a dense or sparse 0/1 array `(n, K)`, a sequence of sets of labels, strings to split at
            the `separator`, one label per sample, a pandas, polars or pyarrow table, or the result of
            `papi.read_candidates`. The column names of a table are the classes; a table with a column `candidates`,
            `excluded` or `annotator` is read by `papi.read_candidates`.

        Returns
        -------
        PartialLabelClassifier
            The fitted classifier.
        """
        _refuse_arguments(unknown)
        with _own_words():
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> "PartialLabelClassifier":
        self._require_numbers()
        if self.tune is not None or (isinstance(self.network, str) and is_pretrained(self.network)):
            return self._fit_photos(X, y)
        samples = self._samples(X, fitting=True)
        targets = read_targets(split_texts(y, self.separator), self.classes)
        _require_equal_lengths(len(samples), len(targets.candidates))
        before = self._weights_to_go_on_from(samples, targets)
        dataset = self._dataset(samples, targets, before)
        settings = settings_for(self._config(), dataset)
        parent = None if before is None else Parent(before.network.state_dict())
        own = None if isinstance(self.network, str) else self.network
        return self._follow(fit(dataset, targets.candidates, settings, parent=parent, network=own), targets)

    def _fit_photos(self, X: Any, y: Any) -> "PartialLabelClassifier":
        """Train a head on the embeddings of photos by a pretrained encoder, and then the encoder if asked for."""
        if self.warm_start:
            raise ValueError("warm_start is not supported with a pretrained encoder: set warm_start=False.")
        targets = read_targets(split_texts(y, self.separator), self.classes)
        sources = sources_of(X)
        _require_equal_lengths(len(sources), len(targets.candidates))
        encoder, config = self._encoder()
        how = encoder.preparation
        names, numbers = tuple(map(str, targets.classes.tolist())), np.arange(len(sources))
        dataset = Dataset("y", names, numbers, how.mean, how.std, labels=targets.labels, candidates=targets.candidates)
        seen = seen_by(encoder, replace(dataset, photos=Photos(sources, how)), config)
        assert seen is not None, "it cannot be interrupted"
        self.n_features_in_ = int(np.prod(how.shape))
        settings = settings_for(config, seen)
        start = None
        if config.tune == "all":
            found = head_first(seen, targets.candidates, config, encoder)
            assert found is not None, "it cannot be interrupted"
            seen, start = found
        return self._follow(fit(seen, targets.candidates, settings, parent=start, encoder=encoder), targets)

    def _encoder(self) -> tuple[Pretrained, RunConfig]:
        """The pretrained encoder, and the settings with it."""
        if self.tune not in (None, *get_args(Tune)):
            raise ValueError(f"tune must be head, all or None; got {self.tune!r}.")
        if isinstance(self.network, nn.Module):
            return adopt(self.network, f"the module {title(self.network)}"), self._config()
        if self.network is not None and not isinstance(self.network, str):
            raise ValueError("tune needs a pretrained encoder: pass a module or a name such as timm:NAME as network.")
        config = with_tuning(self._config())
        encoder = find_encoder(config)
        assert encoder is not None, "the network is a pretrained encoder"
        return encoder, config

    def _follow(self, events: Iterator[Event], targets: Targets) -> "PartialLabelClassifier":
        self.history_: list[Values] = []
        for event in events:
            if isinstance(event, EpochEnded):
                self.history_.append(event.row.to_json())
                self._tell(event.row)
            elif isinstance(event, Finished):
                self._keep(event, targets)
        return self

    def _keep(self, finished: Finished, targets: Targets) -> None:
        """Set the attributes of the fitted classifier."""
        trained = finished.trained
        assert trained is not None, "without a folder, every fit trains"
        network = trained.method.result
        self._model = Model(network, trained.card, next(network.parameters()).device, trained.encoder)
        self.classes_ = targets.classes
        self.confidence_ = np.asarray(trained.arrays.confidence)
        self.labels_ = self.classes_[np.where(targets.candidates, self.confidence_, -1).argmax(1)]
        self.picked_epoch_ = finished.summary.picked_epoch
        self.temperature_ = trained.card.temperature

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely label of each sample, `(n,)`."""
        probabilities = self.predict_proba(X)
        answers: np.ndarray = self.classes_[probabilities.argmax(1)]
        return answers

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, `(n, K)`."""
        check_is_fitted(self)
        return self._model.predict_proba(self._known_samples(X))

    def transform(self, X: Any) -> np.ndarray:
        """Return embeddings of the samples: unit vectors `(n, d)` that are close together for samples of one class."""
        check_is_fitted(self)
        return self._model.embed(self._known_samples(X))

    def score(self, X: Any, y: Any, sample_weight: np.ndarray | None = None) -> float:
        """Return the accuracy if `y` has one label per sample, or the covering rate if it has candidate sets."""
        predicted, y = self.predict(X), split_texts(y, self.separator)
        if is_single(y):
            hits = predicted == np.asarray(y).ravel()
        else:
            column = {label: k for k, label in enumerate(self.classes_.tolist())}
            answers = [column[label] for label in predicted.tolist()]
            hits = candidates_among(y, self.classes_)[np.arange(len(answers)), answers]
        return float(np.average(hits, weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Move the model to the CPU, because the machine that unpickles it may have no GPU."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "_model" in state:
            model = self._model
            encoder = None if model.encoder is None else deepcopy(model.encoder).cpu()
            state["_model"] = Model(deepcopy(model.network).cpu(), model.card, torch.device("cpu"), encoder)
        return state

    @property
    def _n_features_out(self) -> int:
        return self._model.network.projection

    def _require_numbers(self) -> None:
        """Raise TypeError for a parameter of the wrong type; the settings check the values."""
        whole, number = (int, np.integer), (int, float, np.integer, np.floating)
        kinds = {"epochs": whole, "batch_size": whole, "threads": whole, "learning_rate": number, "holdout": number}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                wanted = "a whole number" if kind is whole else "a number"
                raise TypeError(f"{name} must be {wanted} or None; got {value!r}.")

    def _config(self) -> RunConfig:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        return RunConfig(
            data="arrays",
            data_holdout=self.holdout,
            method=self.method,
            option=tuple(f"{name}={as_typed(value)}" for name, value in (self.options or {}).items()),
            network=None if self.network is None else title(self.network),
            tune=self.tune,
            preset=self.preset,
            epochs=self.epochs,
            batch_size=self.batch_size,
            optim=OptimConfig(lr=self.learning_rate),
            select=self.select,
            calibrate=self.calibrate,
            seed=int(seed),
            threads=self.threads,
            device=self.device,
        )

    def _known_samples(self, X: Any) -> Any:
        """Check that samples have the shape of the training samples; photos are not changed."""
        if self._model.preparation is not None:
            return X
        samples = self._samples(X, fitting=False)
        shape = self._model.card.shape
        if samples.shape[1:] != shape:
            raise ValueError(f"X[0] has shape {samples.shape[1:]}, but this classifier was fitted with {shape}.")
        return samples

    def _samples(self, X: Any, fitting: bool) -> np.ndarray:
        """Return images `(n, C, H, W) uint8` or features `(n, d) float32`."""
        array = X if hasattr(X, "shape") else np.asarray(X)
        if len(array.shape) > 2:
            images = _images(np.asarray(array))
            if fitting:
                self.n_features_in_ = int(np.prod(images.shape[1:]))
                if hasattr(self, "feature_names_in_"):  # from an earlier fit on features
                    del self.feature_names_in_
            return images
        features = validate_data(
            self, X, reset=fitting, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2 if fitting else 1
        )
        with np.errstate(over="ignore"):
            single: np.ndarray = features.astype(np.float32)  # the precision of the network
        if not np.isfinite(single).all():
            row, column = (int(each[0]) for each in np.nonzero(~np.isfinite(single)))
            raise ValueError(
                f"X contains NaN, infinity or a number too large for float32: X[{row}] has {features[row, column]} in "
                f"column {column}; correct it, or remove the sample."
            )
        return single

    def _dataset(self, samples: np.ndarray, targets: Targets, before: Model | None) -> Dataset:
        names = tuple(map(str, targets.classes.tolist()))
        dataset = Dataset("y", names, samples, (), (), labels=targets.labels, candidates=targets.candidates)
        dataset = replace(dataset, prior=targets.prior)
        if samples.ndim == 4:
            dataset = replace(dataset, recipe=own_recipe(*samples.shape[2:]))
        if before is None:
            return dataset.measured()
        return replace(dataset, mean=before.card.mean, std=before.card.std)

    def _weights_to_go_on_from(self, samples: np.ndarray, targets: Targets) -> Model | None:
        if not self.warm_start or not hasattr(self, "_model"):
            return None
        if self._model.card.shape != samples.shape[1:]:
            raise ValueError(
                f"X[0] has shape {samples.shape[1:]}, but the previous model was fitted with {self._model.card.shape}: "
                "set warm_start=False to start again."
            )
        if self.classes_.tolist() != targets.classes.tolist():
            raise ValueError("y has other classes than the previous model: list all of them in `classes`.")
        return self._model

    def _tell(self, row: EpochRow) -> None:
        if self.verbose:
            covering = "" if row.covering_rate is None else f", covering rate {row.covering_rate:.2%}"
            print(f"epoch {row.epoch + 1}: loss {row.loss:.4f}{covering}, {row.seconds:.1f} s")


# Names of options in messages about settings, and the names of the parameters here.
_PARAMETERS = {"--data.holdout": "holdout", "--optim.lr": "learning_rate", "--batch-size": "batch_size"}


@contextmanager
def _own_words() -> Iterator[None]:
    """Replace the names of command-line options in errors by the names of the parameters."""
    try:
        yield
    except UserError as error:
        said = str(error)
        for option, parameter in _PARAMETERS.items():
            said = said.replace(option, parameter)
        own = re.sub(r"--(\w+) ", r"\1 ", said)
        raise UserError(own) from error


def _images(array: np.ndarray) -> np.ndarray:
    """Return pixels as `(n, C, H, W) uint8` in writable memory."""
    if array.ndim > 4 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"X[0] must be an image or a row of numbers; got shape {array.shape[1:]} and type {array.dtype}."
        )
    if array.dtype != np.uint8:
        highest = 1 if array.dtype.kind in "bf" else 255
        fits = ((array >= 0) & (array <= highest)).reshape(len(array), -1)  # also rejects NaN
        if not fits.all():
            row = int(np.flatnonzero(~fits.all(1))[0])
            value = array[row].ravel()[np.flatnonzero(~fits[row])[0]]
            raise ValueError(
                f"X[{row}] has a pixel of {value}: pixels must be uint8, whole numbers to 255, or floats from 0 to 1."
            )
        array = np.rint(array * (255 / highest)).astype(np.uint8)
    images = as_image_array(array, "the images of X")
    if min(images.shape) == 0:
        raise ValueError(f"X has 0 pixels: its shape is {array.shape}.")
    return images if images.flags.writeable else images.copy()


def _refuse_arguments(given: Mapping[str, object]) -> None:
    """Reject unsupported arguments of `fit`. scikit-learn must not find `sample_weight` in its signature."""
    if "sample_weight" in given:
        raise TypeError(
            "fit does not support sample_weight, because not every method can weight samples: repeat important samples "
            "with numpy.repeat, or remove unimportant ones."
        )
    if given:
        raise TypeError(f"fit got an unexpected argument {next(iter(given))!r}: pass only X and y.")


def _require_equal_lengths(samples: int, targets: int) -> None:
    if samples != targets:
        first = f"X[{targets}] has no label" if samples > targets else f"y[{samples}] has no sample"
        raise ValueError(f"X has {samples} samples, but y has {targets}: {first}.")
