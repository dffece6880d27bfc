"""Loads your own data: a folder of images, arrays or a feature table, with candidate sets."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, LeavingOut, Opinions, Progress, Report, refuse, silent
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
from papi.data.own.annotations import from_table, read_annotations
from papi.data.own.dawid_skene import vote_prior
from papi.data.own.entries import Rules, checked, opened_rows
from papi.data.own.features import (
    checked_sets,
    finite_features,
    read_feature_mat,
    table_features,
    without_empty_classes,
)
from papi.data.own.folders import misnamed, text_of
from papi.data.own.hub import PREFIX, image_shards, load_shards
from papi.data.own.image_folder import Size, load_annotated, load_by_class, own_recipe
from papi.data.own.tables import read_table
from papi.data.own.trees import Tree
from papi.data.own.votes import DAWID_SKENE, refuse_rule, vote_shares
from papi.errors import UserError, missing
from papi.networks.preparation import Preparation

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")  # may contain features


@dataclass(frozen=True)
class Reading:
    """Options for reading data."""

    annotations: Path | None = None  # the file with the candidate sets
    votes: str = "union"  # how votes become candidate sets
    weigh: str | None = None  # how strongly votes or weights act as a prior over the candidates; None: only weights do
    allow_missing_truth: bool = False
    format: str | None = None  # of that file; None: detected from its content
    column: str | None = None  # where to find the labels in it, if there is more than one place
    threshold: float = 0.0  # minimum share of the weight for a label to become a candidate
    unlabelled: bool = False  # an empty cell makes every class a candidate; otherwise it is rejected
    tree: Tree | None = None  # class hierarchy: a label of an inner node stands for the classes below it
    separator: str | None = None  # between the labels in a cell, if it is not `|`
    by_label: bool = False  # a row without candidates gets its true label as the only one
    size: int | None = None  # side of the images, for folders
    preparation: Preparation | None = None  # how an encoder needs the photos of folders; each is decoded when needed
    image_column: str | None = None  # of parquet files and Hugging Face datasets; None: detected by its type
    split: str = "train"  # the published split to train on
    test_share: float = 0.2  # held out as a test set if there are true labels and no test samples
    seed: int = 0  # of the test split

    @property
    def images(self) -> Size:
        """How the images of a folder are decoded."""
        return self.preparation or self.size

    def rules(self, report: Report) -> Rules:
        """Return the options about candidate sets."""
        return Rules(
            self.votes,
            self.allow_missing_truth,
            report,
            self.format,
            self.column,
            self.threshold,
            self.unlabelled,
            self.tree,
            self.separator,
            self.by_label,
        )


def load_own(path: Path, how: Reading, report: Report = refuse, progress: Progress = silent) -> Dataset:
    """Load the dataset at a path, without normalisation statistics and test split."""
    if text_of(path) is None:
        raise UserError(misnamed(path))
    shards = image_shards(path, how.image_column)
    if shards:
        unpacked = load_shards(shards, how.image_column, progress)
        return replace(load_own(unpacked, replace(how, image_column=None), report, progress), name=path.resolve().stem)
    if how.image_column is not None:
        raise UserError(
            f"--data.image-column requires parquet files or {PREFIX}NAME, and {path} is neither: leave it out."
        )
    if path.is_dir():
        rules = how.rules(report)
        annotated = load_annotated(
            path,
            how.annotations,
            lambda file, classes: read_annotations(file, rules, classes),
            how.images,
            report,
            progress,
        )
        if annotated is not None:
            return _with_sets(*annotated, how)
        refuse_votes(str(path), how)
        return load_by_class(path, how.images, report, progress)
    if not path.exists():
        raise UserError(f"{path} does not exist: specify a known dataset, a folder of images, or a file.")
    readers = {".npz": _load_arrays, ".mat": _load_mat} | dict.fromkeys(TABLES, _load_table)
    if path.suffix.lower() not in readers:
        raise UserError(f"{path} cannot be read: use a folder of images, or a file of type {', '.join(readers)}.")
    if how.size is not None:
        raise UserError(f"--data.size requires a folder of images, and {path} is not one: leave it out.")
    dataset, found = readers[path.suffix.lower()](path, how, report)
    if isinstance(report, LeavingOut):
        dataset, found = _finite_rows(dataset, found)
    if how.annotations is not None:
        return annotate(dataset, how, report)
    if found is None and dataset.labels is None and dataset.candidates is None:
        raise UserError(f"{path} has neither candidates nor labels: add them, or use --candidates.file FILE.")
    if found is not None:
        return _with_sets(dataset, found, how)
    refuse_votes(str(path), how)
    return dataset


def _finite_rows(dataset: Dataset, found: Annotations | None) -> tuple[Dataset, Annotations | None]:
    """Remove rows with features that are not finite numbers, which were already reported."""
    if dataset.kind != "features":
        return dataset, found
    good = np.flatnonzero(np.isfinite(dataset.samples).all(1))
    if len(good) == len(dataset.samples):
        return dataset, found
    return dataset.taking(good), None if found is None else found.taking(good)


def annotate(dataset: Dataset, how: Reading, report: Report = refuse) -> Dataset:
    """Add the candidate sets of a file with one row per training sample, in the same order."""
    assert how.annotations is not None
    found = read_annotations(how.annotations, how.rules(report), dataset.class_names or None, by_name=False)
    if len(found.where) != len(dataset.samples):
        fits_test = dataset.test_samples is not None and len(found.where) == len(dataset.test_samples)
        what = "rows" if dataset.kind == "features" else "images"
        hint = f", or add --data.split test to train on the test {what}, which match" if fits_test else ""
        raise UserError(
            f"{how.annotations} has {len(found.where)} rows, but {dataset.name} has {len(dataset.samples)} training "
            f"{what}: use one row for each{hint}."
        )
    return _with_sets(replace(dataset, class_names=found.class_names), found, how)


def _with_sets(dataset: Dataset, found: Annotations, how: Reading) -> Dataset:
    """Add the candidate sets and labels of the rows to a dataset whose samples are in the same order."""
    labels, notes = _complete_labels(found)
    prior = found.weights if how.weigh != "off" else None
    if found.weights is None and found.votes is None:
        _refuse_weighing(found.source, how)
    elif found.weights is None and found.votes is not None and how.weigh not in (None, "off"):
        prior = vote_shares(found.votes, found.candidates)
    opinions = None
    if found.opinions is not None:
        opinions = Opinions(found.annotators, found.opinions, len(found.where))
    if how.votes == DAWID_SKENE and how.weigh != "off":
        prior = _together(opinions, found)
    whole = replace(
        dataset,
        candidates=found.candidates,
        labels=dataset.labels if labels is None else labels,
        prior=prior,
        opinions=opinions,
        file_names=_names(dataset, found),
        notes=(*dataset.notes, *found.notes, *notes),
    )
    if not found.test.any():
        return whole
    if dataset.test_samples is not None:
        raise UserError(
            f"{found.source} has test rows, but {dataset.name} already has test samples: remove one of them."
        )
    first = int(found.test.argmax())
    # Test samples at the end are taken as a slice, so that memory-mapped images are not loaded.
    tests = dataset.samples[first:] if found.test[first:].all() else dataset.samples[found.test]
    kept = whole.taking(np.flatnonzero(~found.test))
    return replace(kept, test_samples=tests, test_labels=found.labels[found.test])


def _together(opinions: Opinions | None, found: Annotations) -> np.ndarray:
    """Return the prior over candidates from all annotators, weighted by their estimated reliability."""
    if opinions is None:
        raise UserError(
            f"{found.source} has no annotator for each label, which --candidates.votes {DAWID_SKENE} needs: use union "
            "or at-least-N."
        )
    return vote_prior(opinions, found.candidates)


def _names(dataset: Dataset, found: Annotations) -> tuple[str, ...] | None:
    """Return the file names of the rows. In a feature table, they allow the report to show the photos."""
    return found.file_names if dataset.kind == "features" and dataset.file_names is None else dataset.file_names


def refuse_votes(where: str, how: Reading) -> None:
    """Reject options about votes for data without votes."""
    refuse_rule(how.votes, where)
    _refuse_weighing(where, how)


def _refuse_weighing(source: str, how: Reading) -> None:
    if how.weigh not in (None, "off"):
        raise UserError(f"{source} has neither votes nor weights: leave out --candidates.weigh.")


def _complete_labels(found: Annotations) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the true labels if all training rows have one; a few are not enough to evaluate the others."""
    known = found.labels[~found.test] >= 0
    if known.all() and len(known):
        return found.labels, ()
    if not known.any():
        return None, ()
    note = (
        f"only {int(known.sum())} of {len(known)} training rows of {found.source} have a true label, so these are not "
        "used. Move those rows to the split `test` to measure accuracy on them."
    )
    return None, (note,)


def _load_arrays(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
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


def _load_mat(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
    dataset = read_feature_mat(path, report)
    if how.annotations is None:  # otherwise these candidate sets are not used
        dataset = checked_sets(dataset, str(path), how.rules(report))
    return without_empty_classes(dataset), None


def _load_table(path: Path, how: Reading, report: Report) -> tuple[Dataset, Annotations | None]:
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
