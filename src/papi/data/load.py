"""Loads a `Dataset`: a known dataset by name, or your own data by path."""

from dataclasses import replace
from pathlib import Path

from papi.data.dataset import Dataset, Progress, Report, refuse, silent
from papi.data.known.sources import SOURCES, load_known
from papi.data.own.hub import PREFIX, load_hub
from papi.data.own.load import annotate, load_own, refuse_votes
from papi.data.own.reading import Reading
from papi.errors import UserError, unknown

_AS_IT_COMES = Reading()


def load(
    data: str,
    data_dir: Path,
    how: Reading = _AS_IT_COMES,
    report: Report = refuse,
    progress: Progress = silent,
) -> Dataset:
    """A dataset by name, or from a folder or file of one's own, ready to train on.

    Test samples are held out where the data have none but true labels, and samples without published constants are
    measured.
    """
    if data in SOURCES:
        if how.image_column is not None:
            raise UserError(f"--data.image-column requires your own data, but {data} is a known dataset: leave it out.")
        dataset = load_known(data, data_dir, how, progress)
        if how.annotations is None:
            refuse_votes(data, how)
        else:
            dataset = annotate(dataset, how, report)
    elif data.startswith(PREFIX):
        if how.split != "train":
            raise UserError(f"--data.split requires a known dataset, and {data} already has a split: leave it out.")
        unpacked = load_hub(data, how.image_column, progress)
        dataset = load_own(unpacked, replace(how, image_column=None), report, progress)
        dataset = replace(dataset, name=data.removeprefix(PREFIX))
    elif Path(data).exists() or Path(data).suffix or "/" in data:
        if how.split != "train":
            raise UserError(f"--data.split requires a known dataset, and {data} is your own: leave it out.")
        dataset = load_own(Path(data), how, report, progress)
    else:
        raise unknown("dataset", data, [*SOURCES, "a path to your own data"])
    if not len(dataset.samples):
        raise UserError(f"{data} has no usable rows: add some to train on.")
    if how.tree is not None:
        dataset = replace(dataset, levels=how.tree.levels(dataset.class_names))
    dataset = dataset.with_held_out(how.test_share, how.seed)
    return dataset if dataset.mean else dataset.measured()
