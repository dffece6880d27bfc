"""`papi evaluate`: measure the test accuracy of a trained model, overall and per class."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

import papi
from papi.cli.options import OutsideNetwork
from papi.cli.terminal import make_console, printable
from papi.config import CandidatesConfig, RunConfig
from papi.data.dataset import Dataset, Levels
from papi.data.digest import same_data
from papi.data.known.sources import SOURCES
from papi.data.own.hub import are_images_in_tables
from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.runs.samples import trained_on
from papi.runs.schema import Record, Sets
from papi.setup.data import load_dataset
from papi.training.metrics import accuracy, calibration_error, level_accuracies


def evaluate(
    run: Path,
    /,
    *,
    data: str | None = None,
    data_dir: Annotated[Path | None, Parameter(show_default=False)] = None,
    network: OutsideNetwork = None,
) -> None:
    """Evaluate a trained model on test images.

    Parameters
    ----------
    run
        Folder of a finished run.
    data
        Another dataset with all or some of the model's classes. Its test images are used; if it has none, all its
        images with true labels. [default: the test images of the run]
    data_dir
        Folder where known datasets are stored. [default: the folder of the run]
    """
    folder = RunFolder(run)
    record = folder.begun()
    model = papi.load(run, network=network)  # imports torch: check the options first
    config = _config(folder, data_dir)
    # A model must not be evaluated on its training samples, even if --data names the data it was trained on.
    other = data is not None and Path(data).resolve() != Path(config.data).resolve()
    if data is not None and other:
        config = _elsewhere(config, data, model.shape)
    dataset = load_dataset(config, preparation=record.preparation)
    images, labels = _labelled(dataset, other)
    dataset, labels = _in_classes_of(model.class_names, dataset, labels)
    console = make_console()
    for note in _notes(folder, record, config, dataset, other):
        console.print(note, soft_wrap=True)
    samples = images if dataset.photos is None else dataset.photos[images]
    _show(console, model.predict_proba(samples), labels, dataset, other)
    console.print(f"Next: papi report {shlex.quote(str(run))} --open", soft_wrap=True)


def _config(folder: RunFolder, data_dir: Path | None) -> RunConfig:
    """Return the config of the run, with another data folder if one is given."""
    config = folder.read_run_config()
    return replace(config, data_dir=data_dir or config.data_dir)


def _elsewhere(config: RunConfig, data: str, shape: tuple[int, ...]) -> RunConfig:
    """Return the config that reads all of the other data, for a model with inputs of this `shape`."""
    folder = data not in SOURCES and Path(data).is_dir()
    return replace(
        config,
        data=data,
        data_size=shape[-1] if folder and len(shape) == 3 else None,
        data_image_column=config.data_image_column if are_images_in_tables(data) else None,
        data_split="train",
        data_test_share=0,
        candidates=CandidatesConfig(allow_missing_truth=True),  # candidate sets do not matter here
    )


def _labelled(dataset: Dataset, other: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples to evaluate on: the test images; for other data without test images, all images."""
    if dataset.test_samples is not None and dataset.test_labels is not None:
        return dataset.test_samples, dataset.test_labels
    if not other:
        raise UserError(
            f"{dataset.name} has no test images with true labels: use --data to name images that have them."
        )
    if dataset.labels is None:
        raise UserError(
            f"{dataset.name} has no true labels to evaluate on: add one to each row, or add rows with the split `test`."
        )
    return dataset.samples, dataset.labels


def _in_classes_of(names: tuple[str, ...], dataset: Dataset, labels: np.ndarray) -> tuple[Dataset, np.ndarray]:
    """Map the classes of the data, which may be a subset in any order, to the classes of the model."""
    if dataset.class_names == names:
        return dataset, labels
    place = {name: k for k, name in enumerate(names)}
    strange = [name for name in dataset.class_names if name not in place]
    if strange:
        raise UserError(
            f"{dataset.name} has the class {strange[0]!r}, which the model does not have; its classes are "
            f"{', '.join(names)}."
        )
    columns = np.array([place[name] for name in dataset.class_names], np.int64)
    note = f"{dataset.name} has {len(columns)} of the model's {len(names)} classes: only these are evaluated."
    notes = (*dataset.notes, note) if len(columns) < len(names) else dataset.notes
    return replace(dataset, class_names=names, levels=(), notes=notes), columns[labels]


def _notes(folder: RunFolder, record: Record, config: RunConfig, dataset: Dataset, other: bool) -> list[str]:
    """Return notes and warnings about the data."""
    if other:
        return [f"Note: {printable(note)}" for note in dataset.notes]
    warning = _warning(folder, record, config, dataset)
    return [] if warning is None else [f"Warning: {warning}"]  # the notes were shown when the run began


def _warning(folder: RunFolder, record: Record, config: RunConfig, dataset: Dataset) -> str | None:
    """Return a warning if the data differ, or may differ, from the data of the run."""
    try:
        sets = folder.read_sets()
    except UserError:
        doctor = f"papi doctor {shlex.quote(str(folder.path))}"
        return f"candidates.npz cannot be read, so the data may differ from the data of the run: see `{doctor}`."
    enough = config.limit is None or config.limit <= len(dataset.samples)
    if enough and _same(record, dataset.limited(config.limit), sets):
        return None
    return f"{config.data} may have changed since the run was trained; these results are for the current data."


def _same(record: Record, dataset: Dataset, sets: Sets) -> bool:
    return same_data(record.data_hash, trained_on(dataset, sets), sets.candidates)


def _show(console: Console, probabilities: np.ndarray, labels: np.ndarray, dataset: Dataset, other: bool) -> None:
    predicted = probabilities.argmax(1)
    what = ("samples" if dataset.kind == "features" else "images") + (f" of {dataset.name}" if other else "")
    right = accuracy(predicted, labels)
    console.print(f"Test accuracy {right:.2%} on {len(predicted):,} {what}", style="bold", soft_wrap=True)
    for line in _level_lines(predicted, labels, dataset.levels):
        console.print(line, soft_wrap=True)
    console.print(
        f"Calibration error {calibration_error(probabilities, labels):.2%}: "
        "the average gap between the model's confidence and its accuracy",
        soft_wrap=True,
    )
    console.print(_class_table(predicted, labels, dataset.class_names))


def _level_lines(predicted: np.ndarray, labels: np.ndarray, levels: Levels) -> list[str]:
    """Return a line for each level of the class hierarchy, from the top."""
    shares = level_accuracies(predicted, labels, levels)
    return [
        f"Accuracy at level {number} of the hierarchy ({len(set(level)):,} groups): {share:.2%}"
        for number, (level, share) in enumerate(zip(levels, shares, strict=True), 1)
    ]


def _class_table(predicted: np.ndarray, labels: np.ndarray, names: tuple[str, ...]) -> Table:
    table = Table("class", "images", "accuracy", "most often confused with")
    classes = len(names)
    answers = np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
    for name, row, right in zip(names, answers - np.diag(answers.diagonal()), answers.diagonal(), strict=True):
        wrong, total = int(row.max()), int(row.sum() + right)
        confused = f"{names[row.argmax()]} ({wrong / total:.1%})" if wrong else "–"
        share = f"{right / total:.1%}" if total else "–"
        table.add_row(Text(printable(name)), f"{total:,}", share, Text(printable(confused)))
    return table
