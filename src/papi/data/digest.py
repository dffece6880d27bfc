"""Whether data are still those that a run was trained on."""

import hashlib
from typing import Any

import numpy as np

from papi.data.dataset import Dataset

_HASHED_BYTES = 2**31  # of pixels: some seconds


def data_hash(dataset: Dataset, candidates: np.ndarray) -> str:
    """What tells these sets, samples and labels from others. Of more than two gigabytes, every n-th image counts."""
    content = hashlib.sha256(np.packbits(candidates).tobytes())
    for images in (dataset.samples, dataset.test_samples):
        if images is not None:
            for image in images[:: 1 + images.nbytes // _HASHED_BYTES]:  # one at a time: they may lie on disk
                content.update(image.tobytes())
    for known in (dataset.labels, dataset.test_labels, dataset.initial_confidence):
        if known is not None:
            content.update(known.tobytes())
    return content.hexdigest()


def same_data(record: dict[str, Any], dataset: Dataset, candidates: np.ndarray) -> bool:
    """Whether these are the data of the run with this config.json, as far as it can tell."""
    if candidates.shape != (len(dataset.samples), len(dataset.class_names)):
        return False
    known = record["identity"].get("data_hash")
    if known is None or "parent" in record:  # a child's hash has its parent's confidence in it
        return True
    return bool(known == data_hash(dataset, candidates))
