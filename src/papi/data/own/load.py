"""Loads your own data: a folder of images, arrays or a feature table, with candidate sets."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.data.dataset import Dataset, LeavingOut, Opinions, Progress, Report, refuse, silent
from papi.data.own.annotation_arrays import Annotations
from papi.data.own.annotations import read_annotations
from papi.data.own.dawid_skene import vote_prior
from papi.data.own.folders import misnamed, text_of
from papi.data.own.hub import PREFIX, image_shards, load_shards
from papi.data.own.image_folder import load_annotated, load_by_class
from papi.data.own.reading import Reading
from papi.data.own.sample_files import load_arrays, load_mat, load_table
from papi.data.own.votes import DAWID_SKENE, refuse_rule, vote_shares
from papi.errors import UserError

TABLES = (".csv", ".tsv", ".parquet", ".xlsx")  # may contain features


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
    readers = {".npz": load_arrays, ".mat": load_mat} | dict.fromkeys(TABLES, load_table)
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
