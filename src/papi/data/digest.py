"""Hashes of data: what tells a dataset from others, and whether data are still those that a run was trained on."""

import hashlib

import numpy as np

from papi.data.dataset import Dataset

_HASHED_BYTES = 2**31  # of samples: some seconds


def content_hash(dataset: Dataset, also: bytes) -> str:
    """SHA-256 of `also`, then of all samples, true labels, prior and initial confidence of a dataset, in hex digits.

    Of more than two gigabytes of samples, every n-th counts. Photos are told apart by their files, not by what an
    encoder says about them.
    """
    content = hashlib.sha256(also)
    if dataset.photos is not None:
        content.update(dataset.photos.digest(_HASHED_BYTES))
        content.update((np.arange(len(dataset.samples)) if dataset.rows is None else dataset.rows).tobytes())
    for samples in (dataset.samples, dataset.test_samples):
        if samples is not None and dataset.photos is None:
            for sample in samples[:: 1 + samples.nbytes // _HASHED_BYTES]:  # one at a time: they may lie on disk
                content.update(sample.tobytes())
    for known in (dataset.labels, dataset.test_labels, dataset.prior, dataset.initial_confidence):
        if known is not None:
            content.update(known.tobytes())
    return content.hexdigest()


def data_hash(dataset: Dataset, candidates: np.ndarray) -> str:
    """What tells these candidate sets and this dataset from others: part of the identity of a run."""
    return content_hash(dataset, np.packbits(candidates).tobytes())


def same_data(known: str | None, dataset: Dataset, candidates: np.ndarray) -> bool:
    """Whether these are the data with a known `data_hash`; where none is known, as far as their shape can tell."""
    if candidates.shape != (len(dataset.samples), len(dataset.class_names)):
        return False
    return known is None or known == data_hash(dataset, candidates)
