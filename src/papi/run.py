"""Where everything meets: from a config to a trained model in a run folder."""

import hashlib
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from papi import checkpoint, engine, preparation
from papi.config import RunConfig, parse_options, to_dict
from papi.data import candidates as generators
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.data.feature_views import normaliser, views_of
from papi.data.loader import Loader
from papi.data.views import Normalise
from papi.engine import EpochEnded, Snapshot, Stepped
from papi.errors import UserError
from papi.evaluator import Evaluator
from papi.inference import ModelCard, save_model
from papi.methods import find_method
from papi.methods.base import Method
from papi.networks import build, require_fitting
from papi.optim import build_optimizer, learning_rate
from papi.presets import complete
from papi.randomness import seed_torch
from papi.runfolder import RunFolder, identity_hash

HASHED_SAMPLES = 1000


@dataclass(frozen=True)
class Started:
    """Data and network are ready; training begins or goes on."""

    config: RunConfig
    dataset: Dataset
    statistics: dict[str, float]  # of the candidate sets
    parameters: int
    passes: str  # through the encoder in a step
    device: str
    threads: int
    epoch: int  # where training begins: at zero, or where an earlier part ended
    step: int
    steps: int  # in an epoch
    problems: tuple[str, ...]  # what a person should know: of the data, and files that had to be passed over


@dataclass(frozen=True)
class Saved:
    """A checkpoint is on disk."""

    file: Path


@dataclass(frozen=True)
class Stopped:
    """Training was asked to stop. The same command continues it."""

    epoch: int
    step: int


@dataclass(frozen=True)
class Finished:
    """The run is complete."""

    summary: dict[str, Any]
    already: bool = False  # it was complete before
    method: Method | None = None


Event = Started | Stepped | EpochEnded | Saved | Stopped | Finished


def _never() -> bool:
    return False


def train(
    config: RunConfig, path: Path, stop_requested: Callable[[], bool] = _never, progress: PreparationProgress = silent
) -> Iterator[Event]:
    """Read the data a config names, make candidate sets, and fit in the folder `path`.

    `progress` hears of what takes its time before training: decoding images, training an annotator.
    """
    _set_threads(config, RunFolder(path))  # an annotator's answers depend on it, too
    dataset = preparation.load_dataset(config, progress=progress).limited(config.limit)
    config = complete(preparation.settled(config, dataset))
    candidates = preparation.candidate_sets(dataset, config, stop_requested, progress)
    if candidates is None:
        yield Stopped(0, 0)
        return
    yield from fit(dataset, candidates, config, RunFolder(path), stop_requested)


def fit(
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    folder: RunFolder | None = None,
    stop_requested: Callable[[], bool] = _never,
) -> Iterator[Event]:
    """Train on images and candidate sets `(N, K) bool`. In a folder everything is kept, and a run can be continued."""
    config = complete(config)
    device = engine.find_device(config.device)
    method_class = find_method(config.method)
    method_config = parse_options(method_class.Config, config.options)
    identity = _identity(config, asdict(method_config), dataset, candidates)
    if folder is not None:
        folder.refuse_other_run(identity)
        summary = folder.read_summary()
        if summary is not None:
            yield Finished(summary, already=True)
            return
    _set_threads(config, folder)
    method = _build_method(method_class, method_config, dataset, candidates, config, device)
    statistics = generators.statistics(candidates, dataset.labels)
    state: dict[str, Any] | None = None
    problems: list[str] = []
    if folder is not None:
        _prepare(folder, config, identity, dataset, candidates, statistics)
        state, problems = checkpoint.load_newest(folder.checkpoint_file, identity_hash(identity), device)
        folder.write_rows(state["rows"] if state else [])

    normalise = normaliser(dataset.input_shape, dataset.mean, dataset.std, device)
    loader = _build_loader(method, dataset, config, normalise, device)
    evaluator = Evaluator(dataset, normalise, device)
    yield Started(
        config=config,
        dataset=dataset,
        statistics=statistics,
        parameters=sum(parameter.numel() for parameter in method.network.parameters()),
        passes=method.passes_with(method_config),
        device=str(device),
        threads=torch.get_num_threads(),
        epoch=state["epoch"] if state else 0,
        step=state["step"] if state else 0,
        steps=len(loader),
        problems=(*dataset.notes, *problems),
    )
    memory = engine.peak_memory(device)
    for event in engine.fit(
        method,
        loader,
        build_optimizer(method, config.optim),
        learning_rate(config.optim),
        epochs=_known(config.epochs),
        evaluate=evaluator,
        truth=None if dataset.labels is None else torch.from_numpy(dataset.labels).to(device),
        resume=state,
        snapshot_due=lambda steps, seconds: steps >= config.checkpoint.steps or seconds >= config.checkpoint.seconds,
        stop_requested=stop_requested,
    ):
        if isinstance(event, Snapshot):
            state = event.state
            if folder is not None:
                checkpoint.save(folder.checkpoint_file, state, identity_hash(identity))
                yield Saved(folder.checkpoint_file)
            continue
        if isinstance(event, EpochEnded) and folder is not None:
            folder.append_row(event.row)
        if isinstance(event, Stepped) and evaluator.last is None:  # an evaluation takes memory of its own
            memory = engine.peak_memory(device)
        yield event

    assert state is not None
    if state["epoch"] < _known(config.epochs):
        yield Stopped(state["epoch"], state["step"])
        return
    arrays, resolved = evaluator.conclude(method, loader.images)
    summary = _summarise(config, dataset, statistics, state, len(loader.images)) | resolved | {"peak_memory": memory}
    if folder is not None:
        save_model(folder.model_file, method.network, _card(config, dataset, method))
        folder.write_arrays(folder.arrays_file, arrays)
        folder.write_summary(summary)
    yield Finished(summary, method=method)


def _identity(
    config: RunConfig, method_config: dict[str, Any], dataset: Dataset, candidates: np.ndarray
) -> dict[str, Any]:
    """All that decides the result of a run, as JSON values. Data are told by a hash of their sets and some samples."""
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in method_config.items()}
    content = hashlib.sha256(np.packbits(candidates).tobytes())
    content.update(dataset.images[:: max(1, len(candidates) // HASHED_SAMPLES)].tobytes())
    if dataset.initial_confidence is not None:
        content.update(dataset.initial_confidence.tobytes())
    return to_dict(config) | {"option": options, "data_hash": content.hexdigest()}


def _prepare(
    folder: RunFolder,
    config: RunConfig,
    identity: dict[str, Any],
    dataset: Dataset,
    candidates: np.ndarray,
    statistics: dict[str, float],
) -> None:
    """Write what a run is before its first step, unless an earlier part of it has."""
    folder.create()
    if folder.read_config() is not None:
        return
    arrays = {"candidates": candidates}
    if dataset.file_names is not None:
        arrays["file_names"] = np.array(dataset.file_names)
    folder.write_arrays(folder.candidates_file, arrays)
    packages = ("papi-pll", "torch", "numpy")
    folder.write_config(
        {
            "config": to_dict(config),
            "identity": identity,
            "classes": list(dataset.class_names),
            "candidates": statistics,
            "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version()} | {name: version(name) for name in packages},
            "command": sys.argv,
        }
    )


def _set_threads(config: RunConfig, folder: RunFolder | None) -> None:
    """As asked; else as the run began, because results are bit-equal only for the same number of threads."""
    record = folder.read_config() if folder is not None else None
    threads = config.threads or (record["threads"] if record else None)
    if threads:
        torch.set_num_threads(threads)


def _build_method(
    method_class: type[Method],
    method_config: Any,
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    device: torch.device,
) -> Method:
    require_fitting(_known(config.network), dataset.kind)
    seed_torch(config.seed, "network")
    network = build(
        _known(config.network),
        dataset.images.shape[1],
        len(dataset.class_names),
        project=method_class.projects(method_config),
    )
    extras: dict[str, Any] = {}
    if method_class.needs_truth(method_config):
        if dataset.labels is None:
            raise UserError(
                f"--method {config.method} with these options needs true labels, and {dataset.name} has none."
            )
        extras["truth"] = torch.from_numpy(dataset.labels)
    if method_class.needs_shape(method_config):
        extras["shape"] = dataset.input_shape
    method = method_class(network, torch.from_numpy(candidates), method_config, **extras)
    if dataset.initial_confidence is not None and method.confidence is not None:
        method.confidence.replace(torch.arange(len(candidates)), torch.from_numpy(dataset.initial_confidence))
    return method.to(device)


def _build_loader(
    method: Method, dataset: Dataset, config: RunConfig, normalise: Normalise, device: torch.device
) -> Loader:
    return Loader(
        torch.from_numpy(np.ascontiguousarray(dataset.images)).to(device),
        method.candidates,
        views_of(dataset),
        normalise,
        method.views,
        batch_size=_known(config.batch_size),
        seed=config.seed,
        drop_last=bool(config.drop_last),
    )


def _card(config: RunConfig, dataset: Dataset, method: Method) -> ModelCard:
    return ModelCard(
        network=_known(config.network),
        class_names=dataset.class_names,
        shape=dataset.input_shape,
        mean=dataset.mean,
        std=dataset.std,
        projects=method.network.projector is not None,
    )


def _summarise(
    config: RunConfig, dataset: Dataset, statistics: dict[str, float], state: dict[str, Any], images: int
) -> dict[str, Any]:
    """The result of a run. Its accuracy is that of the last epoch; the best on the test images stands beside it."""
    rows = state["rows"]
    accuracies = [row["test_accuracy"] for row in rows if "test_accuracy" in row]
    last10 = accuracies[-10:]
    return {
        "method": config.method,
        "dataset": dataset.name,
        "network": config.network,
        "seed": config.seed,
        "epochs": config.epochs,
        "flip_rate": config.candidates.flip_rate if dataset.candidates is None else None,
        **statistics,
        "test_accuracy": accuracies[-1] if accuracies else None,
        "test_accuracy_best": max(accuracies, default=None),
        "test_accuracy_last10": sum(last10) / len(last10) if last10 else None,
        "prototype_accuracy": rows[-1].get("prototype_accuracy"),
        "training_images": images,
        "seconds": rows[-1]["seconds"],
        "cpu_seconds": sum(row["cpu_seconds"] for row in rows),
        "images_per_second": len(rows) / sum(1 / row["images_per_second"] for row in rows),
    }


def _known(value: Any) -> Any:
    """A value that `complete` has filled in."""
    assert value is not None
    return value
