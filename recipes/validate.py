"""Evaluate settings on samples that are neither training nor test samples of a run.

    python recipes/validate.py --out runs/tuning/NAME [options of `papi train`]
    python recipes/validate.py --out runs/tuning/NAME --data svhn --limit 10000 [options of `papi train`]
    python recipes/validate.py --out runs/tuning/NAME --measured 2000 [options of `papi train`]

Trains on fashion-mini, or on the first images of another dataset, as `papi train` does, and evaluates on the next 500
images per class of the published *training* images (of Fashion-MNIST, for fashion-mini). Use this to choose settings;
it does not use the test images. The "test accuracy" in its run folder is the accuracy on these images. More of them
(`--measured`) tell differences of a few tenths of a point from chance.

On a feature table, it trains on four fifths of the training rows and evaluates on the others; `--seed` draws both.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import cyclopts
import numpy as np

from papi.cli.options import config_options
from papi.config import RunConfig
from papi.data.dataset import Dataset
from papi.data.known.sources import SOURCES
from papi.runs.folder import RunFolder
from papi.setup.data import candidate_sets, load_dataset
from papi.train import Finished, fit, settings_for
from papi.training.engine import EpochEnded

MEASURED = 500  # images per class, or as many as are left
MEASURED_ROWS = 0.2  # share of the training rows of a table
DEFAULT = RunConfig(precision="fp32")  # results do not depend on the processor


def with_other_images(dataset: Dataset, published: Dataset, measured: int = MEASURED) -> Dataset:
    """The dataset with unused training images instead of its test images, `measured` of each class."""
    assert dataset.labels is not None
    assert published.labels is not None
    used = np.bincount(dataset.labels, minlength=len(dataset.class_names))  # the first images of each class
    unused = [np.flatnonzero(published.labels == k)[count : count + measured] for k, count in enumerate(used)]
    chosen = np.concatenate(unused)
    if not len(chosen):
        raise SystemExit("the run trains on all published training images, so none is left to evaluate: set --limit.")
    return replace(dataset, test_samples=published.samples[chosen], test_labels=published.labels[chosen])


def with_training_rows(table: Dataset, seed: int) -> Dataset:
    """A feature table with a part of its training rows instead of its test rows, and without them in training."""
    return replace(table, test_samples=None, test_labels=None).with_held_out(MEASURED_ROWS, seed).measured()


@config_options(experts=True)
def main(
    *, out: Path, measured: int = MEASURED, config: Annotated[RunConfig, cyclopts.Parameter(name="*")] = DEFAULT
) -> None:
    """Train as `papi train` does, and evaluate on training samples that the run does not use."""
    dataset = load_dataset(config)
    if dataset.kind == "features":
        dataset = with_training_rows(dataset.limited(config.limit), config.seed)
    else:
        whole = SOURCES[config.data].part_of if config.data in SOURCES else None
        published = dataset if whole is None else load_dataset(replace(config, data=whole))
        dataset = with_other_images(dataset.limited(config.limit), published, measured)
    settings = settings_for(config, dataset)
    candidates = candidate_sets(dataset, settings)
    assert candidates is not None
    for event in fit(dataset, candidates, settings, RunFolder(out)):
        if isinstance(event, EpochEnded):
            print(f"epoch {event.row.epoch + 1}: {event.row.test_accuracy:.4f}", flush=True)
        elif isinstance(event, Finished):
            print(f"{out.name}: {event.summary.test_accuracy:.4f} on samples that are not test samples")


if __name__ == "__main__":
    cyclopts.run(main)
