"""Reads feature tables, a matrix of numbers instead of images, from .mat, csv or parquet files."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, Report
from papi.data.own.annotation_arrays import Annotations
from papi.data.own.annotations import RESERVED
from papi.data.own.entries import Rules
from papi.data.own.matfiles import read_partial_mat
from papi.data.own.tables import Row, Table, cell_number
from papi.data.own.valid_rows import checked
from papi.errors import UserError

_LARGEST = float(np.finfo(np.float32).max)


def read_feature_mat(path: Path, report: Report) -> Dataset:
    """Read a .mat file with `data`, `partial_target` and, optionally, `target`."""
    with np.errstate(over="ignore"):  # values that are too large become infinite and are reported
        features, candidates, labels = read_partial_mat(path)
    features = finite_features(features, str(path), report)
    names = tuple(str(k) for k in range(candidates.shape[1]))
    return Dataset(path.stem, names, features, (), (), labels=labels, candidates=candidates)


def checked_sets(dataset: Dataset, source: str, rules: Rules) -> Dataset:
    """Check the candidate sets of a dataset; report invalid ones and remove their samples."""
    assert dataset.candidates is not None
    count = len(dataset.samples)
    where = tuple(f"{source}, row {number}" for number in range(1, count + 1))
    labels = np.full(count, -1) if dataset.labels is None else dataset.labels
    given = Annotations(source, where, dataset.class_names, dataset.candidates, labels, np.zeros(count, bool))
    found = checked(given, rules)
    if len(found.where) < count:
        valid = set(found.where)
        dataset = dataset.taking(np.array([row for row in range(count) if where[row] in valid], np.int64))
    return replace(dataset, notes=(*dataset.notes, *found.notes))


def without_empty_classes(dataset: Dataset) -> Dataset:
    """Remove the classes of a feature table that have no samples, if there are true labels.

    Such classes can be neither learned nor tested, and published comparisons remove them from the candidates.
    """
    if dataset.kind != "features" or dataset.candidates is None or dataset.labels is None:
        return dataset
    used, labels = np.unique(dataset.labels, return_inverse=True)
    candidates = dataset.candidates[:, used]
    if len(used) == len(dataset.class_names) or not candidates.any(1).all():  # no set may become empty
        return dataset
    empty = ", ".join(name for k, name in enumerate(dataset.class_names) if k not in used)
    note = f"removed classes of {dataset.name} without samples: {empty}."
    names = tuple(dataset.class_names[k] for k in used)
    return replace(dataset, class_names=names, labels=labels, candidates=candidates, notes=(*dataset.notes, note))


def table_features(table: Table, report: Report) -> np.ndarray:
    """Return all columns of a table without a reserved name as features `(N, d) float32`."""
    columns = [name for name in table.columns if name not in RESERVED]
    if not columns:
        raise UserError(f"{table.path} has no feature columns, only {', '.join(table.columns)}: add one or more.")
    if not table.rows:
        raise UserError(f"{table.path} has no usable rows: add one per sample.")
    features = np.array([[_number(row, column, report) for column in columns] for row in table.rows])
    return features.astype(np.float32)


def finite_features(features: np.ndarray, where: str, report: Report) -> np.ndarray:
    """Convert to float32. Report each row with a value that is not a finite number in float32."""
    if features.shape[1] == 0:
        raise UserError(f"{where} has no feature columns: add one or more.")
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(features, np.float32)
    finite = np.isfinite(small)
    faults = np.flatnonzero(~finite.all(1))
    for row in faults:
        column = int(finite[row].argmin())
        report(
            f"{where}, row {row + 1} has {features[row, column]} in feature {column + 1}: correct it or remove the row."
        )
    return np.where(finite, small, np.float32(np.nan)) if len(faults) else small  # infinity would break the statistics


def _number(row: Row, column: str, report: Report) -> float:
    value = row.values.get(column)
    number = cell_number(value)
    if number is None or not abs(number) <= _LARGEST:
        report(f"{row.where} has {value!r} in the column {column!r}: features must be finite 32-bit numbers.")
        return np.nan
    return number
