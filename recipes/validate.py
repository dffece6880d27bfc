"""Measure settings on images that are neither training nor test images of a run.

    python recipes/validate.py --out runs/tuning/NAME [options of `papi train`]
    python recipes/validate.py --out runs/tuning/NAME --data svhn --limit 10000 [options of `papi train`]

Trains on fashion-mini, or on the first images of another dataset, as `papi train` does, and measures on the next 500 of
each class of the published *training* images (of Fashion-MNIST, for fashion-mini). Settings are chosen with this; the
test images are not looked at. The "test accuracy" in the folder it writes is that of these images.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import cyclopts
import numpy as np

from papi import train as run
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.runs.folder import RunFolder
from papi.setup import data as preparation
from papi.setup.settings import complete
from papi.training.engine import EpochEnded

MEASURED = 500  # images of each class, or what is left of it


def with_other_images(dataset: Dataset, published: Dataset) -> Dataset:
    """The dataset with unused training images in the place of its test images."""
    assert dataset.labels is not None
    assert published.labels is not None
    used = np.bincount(dataset.labels)  # the first of each class
    unused = [np.flatnonzero(published.labels == k)[count : count + MEASURED] for k, count in enumerate(used)]
    chosen = np.concatenate(unused)
    if not len(chosen):
        raise SystemExit("all published training images are trained on, and none is left to measure on: set --limit.")
    return replace(dataset, test_samples=published.samples[chosen], test_labels=published.labels[chosen])


def main(*, out: Path, config: Annotated[RunConfig, cyclopts.Parameter(name="*")] = RunConfig()) -> None:  # noqa: B008
    mini = config.data == "fashion-mini"  # the first 1,000 of each class of Fashion-MNIST
    published = preparation.load_dataset(replace(config, data="fashion-mnist") if mini else config)
    dataset = preparation.load_dataset(config) if mini else published
    dataset = with_other_images(dataset.limited(config.limit), published)
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
