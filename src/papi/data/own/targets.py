"""Converts the targets of an estimator to candidate sets: a 0/1 matrix, label sets, or one label per sample."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from papi.data.own.annotation_arrays import Annotations
from papi.data.own.frames import holds_labels, read_candidates
from papi.data.own.names import joined

COLLECTIONS = (set, frozenset, list, tuple, np.ndarray)
Known = np.ndarray | list[object] | tuple[object, ...]


class Targets(NamedTuple):
    """The contents of `y`."""

    candidates: np.ndarray  # (N, K) bool
    classes: np.ndarray  # (K,)
    labels: np.ndarray | None  # (N,) int64, positions in `classes`, if y has one label per sample
    prior: np.ndarray | None = None  # (N, K) float32: probability of each candidate, if y has weights


def read_targets(y: object, classes: Sequence[Hashable] | None = None) -> Targets:
    """Convert targets to candidate sets. Raise ValueError at the first wrong entry.

    `classes` names the columns of a matrix, or all labels that may occur. By default, they are the column names of a
    table, 0 … K − 1, or the labels that occur.
    """
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None.")
    if isinstance(y, Annotations) or holds_labels(y):
        return _read_sets(y, classes)
    known = as_known(y)
    columns = column_names(y) if _is_matrix(known) else None
    given = columns if classes is None else class_array(classes)
    if given is not None and len(set(given.tolist())) < len(given):
        raise ValueError("classes contains a class twice.")
    if is_single(known):
        if given is None:
            _refuse_joined(known)
        names, found = _single(known, given)
        candidates = np.eye(len(names), dtype=bool)[found]
    else:
        names, candidates, found = *(_matrix(known, given) if _is_matrix(known) else _sets(known, given)), None
    _require_useful(candidates)
    return Targets(candidates, names, found)


def _read_sets(y: Any, classes: Sequence[Hashable] | None) -> Targets:
    """Convert a frame with label columns, or the result of `papi.read_candidates`."""
    names = None if classes is None else tuple(map(str, classes))
    found = y if isinstance(y, Annotations) else read_candidates(y, classes=names)
    _require_useful(found.candidates)
    known = found.labels if len(found.labels) and (found.labels >= 0).all() else None
    return Targets(found.candidates, class_array(found.class_names), known, found.weights)


def as_known(y: object) -> Known:
    """Return `y` as an array, a list or a tuple; it may be a pandas column, a table, or a sparse matrix."""
    if isinstance(y, list | tuple):
        return y
    known = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if known.ndim == 0:
        raise ValueError(f"y must have one target per sample; got {y!r}.")
    return known


def column_names(y: object) -> np.ndarray | None:
    """Return the column names of a table; None for an array or a list."""
    names = getattr(y, "column_names", None)  # pyarrow: its attribute `columns` contains the data
    names = getattr(y, "columns", None) if names is None else names
    return None if names is None or not len(names) else class_array(list(names))


def split_texts(y: Any, separator: str | None) -> Any:
    """Split each string of `y` into a set of labels: `rose|tulip` is rose and tulip. Unchanged without separator."""
    if separator is None:
        return y
    known = as_known(y)
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be the text between two labels, such as '|'; got {separator!r}.")
    if not is_single(known) or not all(isinstance(entry, str) for entry in _entries(known)):
        raise ValueError(f"y has no strings to split at {separator!r}: leave out separator.")
    parts = ([part.strip() for part in str(entry).split(separator)] for entry in _entries(known))
    return [{part for part in each if part} for each in parts]


def is_single(y: object) -> bool:
    """Return whether `y` has one label per sample instead of a set."""
    if isinstance(y, Annotations) or holds_labels(y):
        return False
    known = as_known(y)
    if _is_matrix(known):
        return False
    if isinstance(known, np.ndarray) and known.dtype != object:
        return True
    return not any(isinstance(entry, COLLECTIONS) for entry in known)


def candidates_among(y: object, classes: np.ndarray) -> np.ndarray:
    """Return candidate sets `(N, K) bool` for scoring. Labels that the classifier does not have are ignored."""
    if isinstance(y, Annotations) or holds_labels(y):
        found = y if isinstance(y, Annotations) else read_candidates(y)
        return _by_name(found.candidates, class_array(found.class_names), classes)
    known = as_known(y)
    if _is_matrix(known):
        return _by_name(_matrix(known, None)[1], column_names(y), classes)
    column = {label: k for k, label in enumerate(classes.tolist())}
    member = np.zeros((len(known), len(classes)), bool)
    for row, entry in enumerate(_entries(known)):
        for label in entry if isinstance(entry, COLLECTIONS) else (entry,):
            if label in column:
                member[row, column[label]] = True
    return member


def class_array(labels: Iterable[Hashable]) -> np.ndarray:
    """Convert labels to an array that keeps their types: tuples and mixed types become objects."""
    labels = list(labels)
    plain = len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float | bool | np.generic)
    array = np.empty(len(labels), object)
    array[:] = labels
    return np.array(labels) if plain else array


def _is_matrix(y: Known) -> bool:
    """Return whether `y` is a matrix. As in scikit-learn, a column `(N, 1)` counts as labels, with a warning."""
    return isinstance(y, np.ndarray) and y.ndim > 1 and y.shape[1:] != (1,)


def _by_name(member: np.ndarray, columns: np.ndarray | None, classes: np.ndarray) -> np.ndarray:
    """Return the columns of a matrix in the order of the classes: by name if all are classes, otherwise unchanged."""
    place = {label: k for k, label in enumerate([] if columns is None else columns.tolist())}
    if place and place.keys() <= set(classes.tolist()):
        ordered = np.zeros((len(member), len(classes)), bool)
        for k, label in enumerate(classes.tolist()):
            if label in place:
                ordered[:, k] = member[:, place[label]]
        return ordered
    return _matrix(member, classes)[1]


def _refuse_joined(y: Known) -> None:
    """Reject strings that look like several labels, because each would become a separate class."""
    entries = [entry for entry in _entries(y) if isinstance(entry, str)]
    for separator, several in joined(list(dict.fromkeys(entries))).items():
        row = _entries(y).index(several[0])
        raise ValueError(
            f"y[{row}] is {several[0]!r}, which looks like several labels in one string: set separator={separator!r} "
            "to split it, or list all labels in classes=[…] if it is a single label."
        )


def _entries(y: Known) -> list[object]:
    return y.tolist() if isinstance(y, np.ndarray) else list(y)


def _single(y: Known, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
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


def _matrix(y: Known, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    array = np.asarray(y)
    if array.ndim != 2:
        raise ValueError(f"y must have shape (n, K) with one column per class; got {array.shape}.")
    names = np.arange(array.shape[1]) if given is None else given
    if len(names) != array.shape[1]:
        raise ValueError(f"y[0] has {array.shape[1]} columns, but there are {len(names)} classes: make them equal.")
    wrong = ~np.isin(array, (0, 1)) if array.dtype.kind in "biuf" else np.ones(array.shape, bool)
    if wrong.any():
        row, column = (int(each[0]) for each in np.nonzero(wrong))
        raise ValueError(
            f"y[{row}] has {array[row, column]!r} in column {column}: a candidate matrix must contain 0 and 1."
        )
    return names, array.astype(bool)


def _sets(y: Known, given: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    entries = []
    for row, entry in enumerate(_entries(y)):
        if not isinstance(entry, COLLECTIONS):
            raise ValueError(f"y[{row}] is {entry!r}: use a set of labels for every sample, or one label for each.")
        labels = entry.tolist() if isinstance(entry, np.ndarray) else list(entry)
        if any(not isinstance(label, Hashable) or label != label for label in labels):  # NaN differs from itself
            raise ValueError(
                f"y[{row}] is {entry!r}: labels must be hashable and not NaN, and a matrix must be an array."
            )
        if len(set(labels)) < len(labels):
            raise ValueError(f"y[{row}] names a label twice: {entry!r}; pass a 0/1 matrix as an array, not as lists.")
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
    except TypeError:  # labels of different types cannot be compared
        return class_array(sorted(labels, key=lambda label: (type(label).__name__, repr(label))))


def _unknown(row: int, label: object, names: np.ndarray) -> ValueError:
    known = ", ".join(map(repr, names.tolist()[:10])) + (" …" if len(names) > 10 else "")
    return ValueError(f"y[{row}] has the label {label!r}, which is not one of the classes: {known}.")


def _require_useful(candidates: np.ndarray) -> None:
    empty = np.flatnonzero(~candidates.any(1))
    if len(empty):
        raise ValueError(f"y[{empty[0]}] is empty: every sample needs at least one candidate.")
    if candidates.any(0).sum() < 2:
        raise ValueError("y has only one class, from y[0] on: a classifier needs two or more.")
    if candidates.all():
        raise ValueError("y has every label in every candidate set, from y[0] on: exclude wrong labels for some.")
