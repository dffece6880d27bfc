"""Measure settings on images that are neither training nor test images of `fashion-mini`.

    python scripts/validate.py --out runs/tuning/NAME [options of `papi train`]

Trains on fashion-mini as `papi train` does, and measures on 500 more images of each class from the rest of
Fashion-MNIST's published *training* images. Settings are chosen with this; the test images are not looked at. The
"test accuracy" in the folder it writes is that of these images.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import cyclopts
import numpy as np

from papi import preparation, run
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.engine import EpochEnded
from papi.presets import complete
from papi.runfolder import RunFolder

FIRST, LAST = 1000, 1500  # of each class: fashion-mini has the first 1,000


def with_other_images(dataset: Dataset, published: Dataset) -> Dataset:
    """The dataset with unused training images in the place of its test images."""
    assert published.labels is not None
    classes = range(len(published.class_names))
    chosen = np.concatenate([np.flatnonzero(published.labels == k)[FIRST:LAST] for k in classes])
    return replace(dataset, test_images=published.images[chosen], test_labels=published.labels[chosen])


def main(*, out: Path, config: Annotated[RunConfig, cyclopts.Parameter(name="*")] = RunConfig()) -> None:  # noqa: B008
    published = preparation.load_dataset(replace(config, data="fashion-mnist"))
    dataset = with_other_images(preparation.load_dataset(config), published)
    config = complete(preparation.settled(config, dataset))
    candidates = preparation.candidate_sets(dataset, config)
    assert candidates is not None
    for event in run.fit(dataset, candidates, config, RunFolder(out)):
        if isinstance(event, EpochEnded):
            print(f"epoch {event.row['epoch'] + 1}: {event.row['test_accuracy']:.4f}", flush=True)
        elif isinstance(event, run.Finished):
            print(f"{out.name}: {event.summary['test_accuracy']:.4f} on images that are not test images")


if __name__ == "__main__":
    cyclopts.run(main)
