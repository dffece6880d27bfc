"""Targets as people hand them to an estimator, to candidate sets: a 0/1 matrix, label sets, or one label a sample."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import column_or_1d  # type: ignore[import-untyped]

COLLECTIONS = (set, frozenset, list, tuple, np.ndarray)


class Targets(NamedTuple):
    """What `y` says."""

    candidates: np.ndarray  # (N, K) bool
    classes: np.ndarray  # (K,)
    labels: np.ndarray | None  # (N,) int64, positions in `classes`, where y has one label a sample


def read_targets(y: Any, classes: Sequence[Hashable] | None = None) -> Targets:
    """Candidate sets one can learn from, or a ValueError that names the first entry at fault.

    `classes` names the columns of a matrix, or all labels that may occur; without it they are 0 … K − 1, or the
    labels that do occur.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    y = as_known(y)
    given = None if classes is None else class_array(classes)
    if given is not None and len(set(given.tolist())) < len(given):
        raise ValueError("classes names a class twice.")
    if is_single(y):
        names, found = _single(y, given)
        candidates = np.eye(len(names), dtype=bool)[found]
    else:
        names, candidates, found = *(_matrix(y, given) if _is_matrix(y) else _sets(y, given)), None
    _require_useful(candidates)
    return Targets(candidates, names, found)


def as_known(y: Any) -> Any:
    """`y` as an array, a sparse matrix, or a list, whatever it was: a pandas column, or a table."""
    if not issparse(y) and not isinstance(y, np.ndarray | list | tuple):
        y = np.asarray(y)
    if getattr(y, "ndim", 1) == 0:
        raise ValueError(f"y is {y!r}: give a target for every sample.")
    return y


def is_single(y: Any) -> bool:
    """Whether `y` has one label a sample, and not a set."""
    y = as_known(y)
    if isinstance(y, np.ndarray) and y.dtype != object:
        return not _is_matrix(y)
    return not _is_matrix(y) and not any(isinstance(entry, COLLECTIONS) for entry in y)


def candidates_among(y: Any, classes: np.ndarray) -> np.ndarray:
    """Candidate sets `(N, K) bool` to measure by. Labels a classifier does not know count as never answered."""
    y = as_known(y)
    if _is_matrix(y):
        return _matrix(y, classes)[1]
    column = {label: k for k, label in enumerate(classes.tolist())}
    member = np.zeros((len(y), len(classes)), bool)
    for row, entry in enumerate(_entries(y)):
        for label in entry if isinstance(entry, COLLECTIONS) else (entry,):
            if label in column:
                member[row, column[label]] = True
    return member


def class_array(labels: Iterable[Hashable]) -> np.ndarray:
    """Labels as an array that keeps what they are: tuples and mixtures of types become objects."""
    labels = list(labels)
    plain = len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float | bool | np.generic)
    array = np.empty(len(labels), object)
    array[:] = labels
    return np.array(labels) if plain else array


def _is_matrix(y: Any) -> bool:
    """A column of labels `(N, 1)` is none: scikit-learn takes it for labels, with a warning, and so do we."""
    return bool(issparse(y)) or (getattr(y, "ndim", 1) > 1 and y.shape[1:] != (1,))


def _entries(y: Any) -> list[Any]:
    return y.tolist() if isinstance(y, np.ndarray) else list(y)


def _single(y: Any, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    values = column_or_1d(y, warn=True)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"y contains NaN or infinity: y[{row}] is {values[row]}.")
    check_classification_targets(values)
    entries = values.tolist()
    names = _sorted(set(entries)) if given is None else given
    column = {label: k for k, label in enumerate(names.tolist())}
    for row, label in enumerate(entries):
        if label not in column:
            raise _unknown(row, label, names)
    return names, np.array([column[label] for label in entries], np.int64)


def _matrix(y: Any, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    array = y.toarray() if issparse(y) else np.asarray(y)
    if array.ndim != 2:
        raise ValueError(f"y has shape {array.shape}: give candidates as (n, K), one column a class.")
    names = np.arange(array.shape[1]) if given is None else given
    if len(names) != array.shape[1]:
        raise ValueError(f"y[0] has {array.shape[1]} columns and there are {len(names)} classes: they must agree.")
    wrong = ~np.isin(array, (0, 1)) if array.dtype.kind in "biuf" else np.ones(array.shape, bool)
    if wrong.any():
        row, column = (int(each[0]) for each in np.nonzero(wrong))
        raise ValueError(f"y[{row}] has {array[row, column]!r} in column {column}: a candidate matrix holds 0 and 1.")
    return names, array.astype(bool)


def _sets(y: Any, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    entries = []
    for row, entry in enumerate(_entries(y)):
        if not isinstance(entry, COLLECTIONS):
            raise ValueError(f"y[{row}] is {entry!r}: give a set of labels for every sample, or one label for each.")
        labels = entry.tolist() if isinstance(entry, np.ndarray) else list(entry)
        if any(not isinstance(label, Hashable) or label != label for label in labels):  # NaN differs from itself
            raise ValueError(f"y[{row}] is {entry!r}: labels are hashable and not NaN. Give a matrix as an array.")
        if len(set(labels)) < len(labels):
            raise ValueError(f"y[{row}] names a label twice: {entry!r}. Give a 0/1 matrix as an array, not as lists.")
        entries.append(labels)
    names = _sorted({label for labels in entries for label in labels}) if given is None else given
    column = {label: k for k, label in enumerate(names.tolist())}
    member = np.zeros((len(entries), len(names)), bool)
    for row, labels in enumerate(entries):
        for label in labels:
            if label not in column:
                raise _unknown(row, label, names)
            member[row, column[label]] = True
    return names, member


def _sorted(labels: set[Any]) -> np.ndarray:
    try:
        return class_array(sorted(labels))
    except TypeError:  # labels of different kinds have no order of their own
        return class_array(sorted(labels, key=lambda label: (type(label).__name__, repr(label))))


def _unknown(row: int, label: Any, names: np.ndarray) -> ValueError:
    known = ", ".join(map(repr, names.tolist()[:10])) + (" …" if len(names) > 10 else "")
    return ValueError(f"y[{row}] has the label {label!r}, which is none of the classes: {known}.")


def _require_useful(candidates: np.ndarray) -> None:
    empty = np.flatnonzero(~candidates.any(1))
    if len(empty):
        raise ValueError(f"y[{empty[0]}] is empty: every sample needs at least one candidate.")
    if candidates.any(0).sum() < 2:
        raise ValueError("y[0] and all after it name one class only: a classifier needs two or more.")
    if candidates.all():
        raise ValueError("y[0] and all after it hold every label: nothing can be learnt from them.")
