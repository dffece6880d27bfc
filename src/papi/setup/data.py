"""Loads the data of a config and creates the candidate sets of its settings. Imports torch only if needed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.config import CandidateSettings, RunConfig, Settings
from papi.data import candidates as generators
from papi.data import load
from papi.data.dataset import Dataset, LeavingOut, Progress, Report, refuse, silent
from papi.data.images.arrays import picture_of
from papi.data.images.photos import Photos
from papi.data.known.sources import SOURCES
from papi.data.own.folders import leads_out
from papi.data.own.groupings import read_groups, read_matrix
from papi.data.own.image_folder import sorted_by_class
from papi.data.own.reading import Reading
from papi.data.own.trees import read_tree
from papi.errors import UserError
from papi.networks.preparation import Preparation

Made = np.ndarray | None  # candidate sets `(N, K) bool`, or None if creating them was interrupted


def load_dataset(
    config: RunConfig,
    report: Report = refuse,
    progress: Progress = silent,
    preparation: Preparation | None = None,
) -> Dataset:
    """Load the data of a config, with its own candidate sets if there are any.

    With a `preparation`, images are loaded as photos for a pretrained encoder.
    """
    how = Reading(
        annotations=config.candidates.file,
        votes=config.candidates.votes,
        weigh=config.candidates.weigh,
        allow_missing_truth=config.candidates.allow_missing_truth,
        format=config.candidates.format,
        column=config.candidates.column,
        threshold=config.candidates.threshold,
        unlabelled=config.candidates.empty == "unlabelled",
        by_label=config.candidates.empty == "label",
        tree=None if config.classes_tree is None else read_tree(config.classes_tree),
        separator=config.candidates.separator,
        size=config.data_size if preparation is None else None,
        preparation=preparation,
        image_column=config.data_image_column,
        split=config.data_split,
        test_share=config.data_test_share,
        seed=config.seed,
    )
    if not config.skip_bad or report is not refuse:
        dataset = load.load(config.data, config.data_dir, how, report, progress)
    else:
        leaving = LeavingOut()
        dataset = load.load(config.data, config.data_dir, how, leaving, progress)
        dataset = replace(dataset, notes=(*dataset.notes, *leaving.notes()))
    return dataset if preparation is None else as_photos(dataset, preparation)


def as_photos(dataset: Dataset, preparation: Preparation) -> Dataset:
    """Return the images as photos for an encoder; the images of an array become separate photos."""
    if dataset.photos is not None:
        return dataset
    if dataset.kind == "features":
        raise UserError(
            f"{dataset.name} has features, but a pretrained encoder needs photos: leave out --network, or use images."
        )
    parts = [part for part in (dataset.samples, dataset.test_samples) if part is not None]
    pictures = [picture_of(image) for part in parts for image in part]
    count = len(dataset.samples)
    return replace(
        dataset,
        samples=np.arange(count),
        test_samples=None if dataset.test_samples is None else np.arange(count, len(pictures)),
        mean=preparation.mean,
        std=preparation.std,
        photos=Photos(pictures, preparation),
    )


def require_apart(config: RunConfig, out: Path) -> None:
    """Reject an output folder inside a folder of images with one subfolder per class: it would become a class."""
    data = Path(config.data)
    if config.data in SOURCES or config.candidates.file is not None or not data.is_dir() or leads_out(out, data):
        return
    if sorted_by_class(data):
        raise UserError(
            f"{out} is inside {data}, where each subfolder is a class: choose a folder outside it with --out."
        )


def candidate_sets(
    dataset: Dataset,
    settings: Settings,
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> Made:
    """Return the candidate sets of the data, or create those of the settings; None if that was interrupted."""
    if settings.candidates.kind is None:
        assert dataset.candidates is not None, "settings have a kind if the data have no candidate sets"
        made: Made = dataset.candidates
    elif settings.candidates.kind == "instance-dependent":
        made = _instance_dependent(dataset, settings, stop_requested, progress)
    else:
        made = _make(dataset, settings.candidates)
    if made is not None:
        generators.require_useful(made, dataset.name)
    return made


def _true_labels(dataset: Dataset) -> np.ndarray:
    """Return the true labels that candidate sets are synthesized from."""
    if dataset.labels is None:
        raise UserError(
            f"{dataset.name} has neither candidate labels nor true labels: add candidate labels with --candidates.file."
        )
    if len(dataset.class_names) < 2:
        raise UserError(f"{dataset.name} has only one class: a classifier needs two or more.")
    return dataset.labels


def _make(dataset: Dataset, sets: CandidateSettings) -> np.ndarray:
    labels, classes = _true_labels(dataset), len(dataset.class_names)
    if sets.kind == "hierarchical":
        groups = dataset.groups if sets.groups is None else read_groups(sets.groups, dataset.class_names)
        if groups is None:
            raise UserError(
                f"{dataset.name} has no superclasses: specify groups of classes with --candidates.groups FILE."
            )
        return generators.hierarchical(labels, groups, sets.flip_rate, sets.seed)
    if sets.kind == "class-dependent":
        return generators.class_dependent(labels, _matrix(sets.matrix or "pair", classes, sets.flip_rate), sets.seed)
    if sets.kind == "uniform-sets":
        return generators.uniform_sets(labels, classes, sets.seed)
    if sets.kind == "noisy":
        return generators.noisy(labels, classes, sets.flip_rate, sets.noise_rate, sets.seed)
    return generators.uniform(labels, classes, sets.flip_rate, sets.seed)


def _instance_dependent(
    dataset: Dataset, settings: Settings, stop_requested: Callable[[], bool], progress: Progress
) -> Made:
    from papi.training.annotator import annotator_logits  # imports torch, which reports do not need

    labels, sets = _true_labels(dataset), settings.candidates
    logits = annotator_logits(
        dataset,
        network=sets.annotator,
        epochs=sets.annotator_epochs,
        seed=sets.seed,
        device=settings.device,
        stop_requested=stop_requested,
        progress=progress,
    )
    if logits is None:
        return None
    chances = generators.instance_probabilities(logits, labels, sets.rule, sets.instance_rate)
    return generators.instance_dependent(labels, chances, sets.seed)


def _matrix(name: str, classes: int, flip_rate: float) -> np.ndarray:
    """Return a built-in matrix, or the matrix in a file."""
    if Path(name).suffix in (".csv", ".npy"):
        return read_matrix(Path(name), classes)
    return generators.case_matrix(name, classes, flip_rate)
