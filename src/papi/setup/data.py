"""From a config to a dataset and its candidate sets: what happens before training. Loads torch only if needed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from papi.config import CandidateKind, CandidatesConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset, Progress, Report, refuse, silent
from papi.data.known import sources
from papi.data.own.groupings import read_groups, read_matrix
from papi.data.own.load import Reading
from papi.errors import UserError


def load_dataset(config: RunConfig, report: Report = refuse, progress: Progress = silent) -> Dataset:
    """The data a config names, with the candidate sets that people bring."""
    how = Reading(
        annotations=config.candidates.file,
        votes=config.candidates.votes,
        weigh_votes=config.candidates.weigh_votes,
        allow_missing_truth=config.candidates.allow_missing_truth,
        size=config.data_size,
        split=config.data_split,
        test_share=config.data_test_share,
        seed=config.seed,
    )
    return sources.load(config.data, config.data_dir, how, report, progress)


def default_kind(data: str) -> CandidateKind:
    """How sets are made for a dataset without any, unless a person wants others."""
    return "hierarchical" if data in sources.HIERARCHICAL else "uniform"


def settled(config: RunConfig, dataset: Dataset) -> RunConfig:
    """The config with what only the data can tell: the kind of candidate sets, and a network for features."""
    if config.network is None and dataset.kind == "features":
        config = replace(config, network="mlp")
    if config.candidates.kind is None and dataset.candidates is None:
        config = replace(config, candidates=replace(config.candidates, kind=default_kind(config.data)))
    _require_used(config.candidates)
    return config


def _require_used(sets: CandidatesConfig) -> None:
    """Stop at a setting that candidate sets of this kind are not made with: it would do nothing."""
    kind = sets.kind or "given with the data"
    used = {"flip_rate": sets.kind is not None and sets.rate is not None, "noise_rate": sets.kind == "noisy"}
    for name, counts in used.items():
        if not counts and getattr(sets, name) != getattr(CandidatesConfig(), name):
            option = f"--candidates.{name.replace('_', '-')}"
            raise UserError(f"{option} does nothing for candidate sets that are {kind}: leave it out.")


def candidate_sets(
    dataset: Dataset,
    config: RunConfig,
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> np.ndarray | None:
    """The sets that came with the data, or those a settled config asks for; None if making them was stopped."""
    if config.candidates.kind is None:
        assert dataset.candidates is not None, "a settled config names a kind where the data have no sets"
        made: np.ndarray | None = dataset.candidates
    else:
        made = _make(dataset, config, stop_requested, progress)
    if made is not None:
        generators.require_useful(made, dataset.name)
    return made


def _make(
    dataset: Dataset, config: RunConfig, stop_requested: Callable[[], bool], progress: Progress
) -> np.ndarray | None:
    labels, classes, settings = dataset.labels, len(dataset.class_names), config.candidates
    if labels is None:
        raise UserError(
            f"{dataset.name} has no true labels to make candidate sets from: give yours with --candidates.file."
        )
    if classes < 2:
        raise UserError(f"{dataset.name} knows one class only: a classifier needs two or more.")
    assert settings.seed is not None, "presets.complete fills it in"
    if settings.kind == "hierarchical":
        groups = dataset.groups if settings.groups is None else read_groups(settings.groups, dataset.class_names)
        if groups is None:
            raise UserError(
                f"{dataset.name} has no superclasses: give groups of classes with --candidates.groups FILE."
            )
        return generators.hierarchical(labels, groups, settings.flip_rate, settings.seed)
    if settings.kind == "class-dependent":
        matrix = _matrix(settings.matrix or "pair", classes, settings.flip_rate)
        return generators.class_dependent(labels, matrix, settings.seed)
    if settings.kind == "uniform-sets":
        return generators.uniform_sets(labels, classes, settings.seed)
    if settings.kind == "noisy":
        return generators.noisy(labels, classes, settings.flip_rate, settings.noise_rate, settings.seed)
    if settings.kind == "instance-dependent":
        from papi.training.annotator import annotator_logits

        logits = annotator_logits(
            dataset,
            network=settings.annotator,
            epochs=settings.annotator_epochs,
            seed=settings.seed,
            device=config.device,
            stop_requested=stop_requested,
            progress=progress,
        )
        if logits is None:
            return None
        chances = generators.instance_probabilities(logits, labels, settings.rule, settings.instance_rate)
        return generators.instance_dependent(labels, chances, settings.seed)
    return generators.uniform(labels, classes, settings.flip_rate, settings.seed)


def _matrix(name: str, classes: int, flip_rate: float) -> np.ndarray:
    """A named case, or the matrix in a file."""
    if Path(name).suffix in (".csv", ".npy"):
        return read_matrix(Path(name), classes)
    return generators.case_matrix(name, classes, flip_rate)
