"""Hashes of data, which show whether data have changed since a run was trained."""

import hashlib
from collections.abc import Iterable

import numpy as np

from papi.data.dataset import Dataset
from papi.data.packed_rows import parts_of

_HASHED_BYTES = 2**31  # of samples: some seconds


def content_hash(dataset: Dataset, also: Iterable[bytes]) -> str:
    """SHA-256 of `also`, then of all samples, true labels, prior and initial confidence of a dataset, in hex digits.

    Of more than two gigabytes of samples, every n-th counts. Photos are told apart by their files, not by what an
    encoder says about them.
    """
    content = hashlib.sha256()
    for some in also:
        content.update(some)
    if dataset.photos is not None:
        content.update(dataset.photos.digest(_HASHED_BYTES))
        content.update((np.arange(len(dataset.samples)) if dataset.rows is None else dataset.rows).tobytes())
    for samples in (dataset.samples, dataset.test_samples):
        if samples is not None and dataset.photos is None:
            for sample in samples[:: 1 + samples.nbytes // _HASHED_BYTES]:  # one at a time: they may lie on disk
                content.update(sample.tobytes())
    for known in (dataset.labels, dataset.test_labels, dataset.prior, dataset.initial_confidence):
        if known is not None:
            for part in parts_of(len(known), known.shape[1] if len(known.shape) > 1 else 1):
                content.update(known[part].tobytes())
    return content.hexdigest()


def data_hash(dataset: Dataset, candidates: np.ndarray) -> str:
    """What tells these candidate sets and this dataset from others: part of the identity of a run."""
    # A part has a multiple of eight rows, so that its bits fill whole bytes.
    return content_hash(dataset, (np.packbits(candidates[part]).tobytes() for part in parts_of(*candidates.shape)))


def same_data(known: str | None, dataset: Dataset, candidates: np.ndarray) -> bool:
    """Whether these are the data with a known `data_hash`; where none is known, as far as their shape can tell."""
    if candidates.shape != (len(dataset.samples), len(dataset.class_names)):
        return False
    return known is None or known == data_hash(dataset, candidates)
