"""Loads samples and candidate sets from one file: arrays (.npz), features of MATLAB (.mat) or a feature table."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, LeavingOut, Report
from papi.data.images.arrays import as_image_array
from papi.data.own.annotation_arrays import (
    SETS,
    Annotations,
    checked_labels,
    class_names,
    from_arrays,
    load_npz,
    numbered_classes,
)
from papi.data.own.annotations import from_table
from papi.data.own.features import (
    checked_sets,
    finite_features,
    read_feature_mat,
    table_features,
    without_empty_classes,
)
from papi.data.own.image_folder import own_recipe
from papi.data.own.reading import Reading
from papi.data.own.tables import read_table
from papi.data.own.valid_rows import checked, opened_rows
from papi.errors import UserError, missing


def load_arrays(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
    """Load an .npz file.

    It contains `images` `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)` of uint8, or `features` `(N, d)`, and
    `candidates` (0/1 for each class), `counts` (votes), `weights` or `labels`, unless these are in a separate file.
    Optional arrays are `test_images` or `test_features` with `test_labels`, and `class_names`.
    """
    arrays = load_npz(path)
    kind = "features" if "features" in arrays else "images"
    if kind not in arrays:
        raise missing(path, "array", "images", arrays)
    if {"features", "images"} <= arrays.keys():
        raise UserError(f"{path} has both features and images: leave one out.")
    samples = _samples(arrays[kind], kind, path, report)
    names = class_names(arrays, path) or ()
    found = None
    if set(SETS) & arrays.keys():
        rules = how.rules(report)
        rows = from_arrays(arrays, path, names or None, how.votes, how.threshold)
        found = checked(opened_rows(rows, rules), rules)
        if len(found.where) != len(samples):
            if not isinstance(report, LeavingOut) or len(rows.where) != len(samples):
                raise UserError(
                    f"{path} has {len(samples)} {kind}, but {len(found.where)} usable rows of candidates: use one row "
                    "for each."
                )
            kept = rows.positions(found.where)
            samples = samples[kept]
            if "labels" in arrays:
                arrays = arrays | {"labels": arrays["labels"][kept]}
        names = found.class_names
    labels = arrays.get("labels")
    if not names and labels is not None and labels.dtype.kind in "iu" and labels.size:
        names = numbered_classes(labels, f"labels of {path}")
    dataset = Dataset(path.stem, names, samples, (), ())
    if kind == "images":
        dataset = replace(dataset, recipe=own_recipe(*samples.shape[2:]))
    if labels is not None:
        dataset = replace(dataset, labels=checked_labels(labels, len(samples), len(names), f"labels of {path}"))
    return _with_tests(dataset, arrays, path, report), found


def _with_tests(dataset: Dataset, arrays: dict[str, np.ndarray], path: Path, report: Report) -> Dataset:
    """Add the test samples of an .npz file, if there are any."""
    kind = f"test_{dataset.kind}"
    labels = arrays.get("test_labels")
    if kind not in arrays:
        if labels is not None:
            raise missing(f"{path}, which has test_labels,", "array", kind, arrays)
        return dataset
    tests = _samples(arrays[kind], kind, path, report)
    if tests.shape[1:] != dataset.samples.shape[1:]:
        raise UserError(
            f"{kind} in {path} have shape {tests.shape[1:]}, but {dataset.kind} have {dataset.samples.shape[1:]}: make "
            "them equal."
        )
    if labels is None:
        note = f"{kind} in {path} have no test_labels, so they are not used to measure accuracy."
        return replace(dataset, test_samples=tests, notes=(*dataset.notes, note))
    labels = checked_labels(labels, len(tests), len(dataset.class_names), f"test_labels of {path}")
    return replace(dataset, test_samples=tests, test_labels=labels)


def _samples(array: np.ndarray, kind: str, path: Path, report: Report) -> np.ndarray:
    """Return images `(N, C, H, W) uint8` or features `(N, d) float32` from an array of an .npz file."""
    if kind.endswith("images"):
        images = as_image_array(array, f"{kind} of {path}")
        if 0 in images.shape[1:]:
            raise UserError(f"{kind} in {path} must have a height and a width above 0; got shape {array.shape}.")
        return images
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "biuf":
        raise UserError(f"{kind} in {path} must be numbers of shape (N, d); got {array.dtype} of shape {array.shape}.")
    return finite_features(array, f"{path}, {kind}", report)


def load_mat(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
    """Load a .mat file with features and candidate sets."""
    dataset = read_feature_mat(path, report)
    if how.annotations is None:  # otherwise these candidate sets are not used
        dataset = checked_sets(dataset, str(path), how.rules(report))
    return without_empty_classes(dataset), None


def load_table(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
    """Load a feature table with candidates in its own rows or in a separate file."""
    table = read_table(path, report)
    dataset = Dataset(path.stem, (), table_features(table, report), (), ())
    if "candidates" not in table.columns:
        if how.annotations is None:
            raise UserError(f"{path} has no column candidates: add it, or use --candidates.file FILE.")
        return dataset, None
    found = from_table(table, how.rules(report))
    if len(found.where) != len(dataset.samples):  # only if problems are collected instead of raised
        places = {row.where: k for k, row in enumerate(table.rows)}
        dataset = dataset.taking(np.array([places[where] for where in found.where], np.int64))
    return replace(dataset, class_names=found.class_names), found
