"""Selects the samples that a run was trained on: all, unless a person has removed bad images."""

import numpy as np

from papi.data.dataset import Dataset
from papi.runs.schema import Sets


def trained_on(dataset: Dataset, sets: Sets) -> Dataset:
    """Select the samples of a run's candidate sets by file name, otherwise by position.

    If the dataset has changed and lacks one of them, it is returned unchanged; the caller compares and reports it.
    """
    if len(sets.candidates) >= len(dataset.samples):
        return dataset
    if sets.file_names is not None and dataset.file_names is not None:
        known, wanted = np.array(dataset.file_names), sets.file_names
    else:
        positions = np.arange(len(dataset.samples)) if dataset.rows is None else dataset.rows
        known, wanted = positions, np.arange(0) if sets.rows is None else sets.rows
    order = np.argsort(known, kind="stable")
    places = order[np.searchsorted(known, wanted, sorter=order).clip(max=len(known) - 1)]
    whole = len(wanted) == len(sets.candidates) and np.array_equal(known[places], wanted) and _rises(places)
    return dataset.taking(places) if whole else dataset


def _rises(places: np.ndarray) -> bool:
    return bool((np.diff(places) > 0).all())
