"""The data that a config names, and the candidate sets that its settings ask for. Loads torch only if needed."""

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
from papi.data.own.load import Reading
from papi.data.own.trees import read_tree
from papi.errors import UserError
from papi.networks.preparation import Preparation

Made = np.ndarray | None  # candidate sets `(N, K) bool`, or None where making them was stopped


def load_dataset(
    config: RunConfig,
    report: Report = refuse,
    progress: Progress = silent,
    preparation: Preparation | None = None,
) -> Dataset:
    """The data a config names, with the candidate sets that people bring; images as photos for an encoder, if it is
    said how they are to be prepared."""
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
    """The same images, as photos for an encoder: those of an array become pictures of their own."""
    if dataset.photos is not None:
        return dataset
    if dataset.kind == "features":
        raise UserError(
            f"{dataset.name} has features, and a pretrained encoder takes photos: leave out --network, or give images."
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
    """Refuse to write a run into a folder of images whose folders are its classes: the run would be one of them."""
    data = Path(config.data)
    if config.data in SOURCES or config.candidates.file is not None or not data.is_dir() or leads_out(out, data):
        return
    if sorted_by_class(data):
        raise UserError(
            f"{out} lies in {data}, where each folder is a class: choose a folder outside of it with --out."
        )


def candidate_sets(
    dataset: Dataset,
    settings: Settings,
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> Made:
    """The sets that came with the data, or those that the settings ask for; None if making them was stopped."""
    if settings.candidates.kind is None:
        assert dataset.candidates is not None, "settings name a kind where the data have no sets"
        made: Made = dataset.candidates
    elif settings.candidates.kind == "instance-dependent":
        made = _instance_dependent(dataset, settings, stop_requested, progress)
    else:
        made = _make(dataset, settings.candidates)
    if made is not None:
        generators.require_useful(made, dataset.name)
    return made


def _true_labels(dataset: Dataset) -> np.ndarray:
    """What sets are made from."""
    if dataset.labels is None:
        raise UserError(
            f"{dataset.name} has no true labels to make candidate sets from: give yours with --candidates.file."
        )
    if len(dataset.class_names) < 2:
        raise UserError(f"{dataset.name} knows one class only: a classifier needs two or more.")
    return dataset.labels


def _make(dataset: Dataset, sets: CandidateSettings) -> np.ndarray:
    labels, classes = _true_labels(dataset), len(dataset.class_names)
    if sets.kind == "hierarchical":
        groups = dataset.groups if sets.groups is None else read_groups(sets.groups, dataset.class_names)
        if groups is None:
            raise UserError(
                f"{dataset.name} has no superclasses: give groups of classes with --candidates.groups FILE."
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
    from papi.training.annotator import annotator_logits  # loads torch, which readers of reports do without

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
    """A named case, or the matrix in a file."""
    if Path(name).suffix in (".csv", ".npy"):
        return read_matrix(Path(name), classes)
    return generators.case_matrix(name, classes, flip_rate)
