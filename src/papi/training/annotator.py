"""The annotator network for instance-dependent candidates: it is trained on true labels to find confusable classes.

Its predictions are stored in the cache under a key of the data and the settings, so that it is trained only once.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from papi import distributed
from papi.config import OptimSettings
from papi.data.dataset import Dataset, Progress, silent
from papi.data.digest import content_hash
from papi.data.loader import Loader, on_device
from papi.data.views.choose import normaliser_of, views_of
from papi.errors import UserError
from papi.files.durable import replacing
from papi.files.lock import InUseError, Lock
from papi.files.places import cache_dir
from papi.methods.supervised import Supervised, SupervisedConfig
from papi.networks import build, require_fitting
from papi.randomness import seed_torch
from papi.runs import checkpoint
from papi.training import engine
from papi.training.devices import find_device
from papi.training.evaluation import evaluate
from papi.training.optim import build_optimizer, learning_rate

BATCH_SIZE = 64
OPTIM = OptimSettings(
    optimizer="sgd",
    lr=0.1,
    momentum=0.9,
    nesterov=True,
    weight_decay=5e-4,
    decay="matrices",
    schedule="warmup-cosine",
)


def annotator_logits(
    dataset: Dataset,
    *,
    network: str = "small",
    epochs: int = 12,
    seed: int = 0,
    device: str = "auto",
    stop_requested: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> np.ndarray | None:
    """Logits of the annotator for all training samples, in evaluation mode: `(N, K) float32`; None if interrupted.

    Interrupted training resumes from its last epoch when the same annotator is needed again. Several processes train
    it together, and only the first one accesses the cache.
    """
    assert dataset.labels is not None
    if network == "small" and dataset.kind == "features":
        network = "mlp"
    require_fitting(network, dataset.kind)
    settings = {"network": network, "epochs": epochs, "seed": seed, "batch": BATCH_SIZE, "classes": dataset.class_names}
    key = _content_key(dataset, settings)
    folder = cache_dir() / "annotators" / key
    kept = folder / "logits.npy"
    known = distributed.from_first(lambda: _read(kept, (len(dataset.samples), len(dataset.class_names))))
    if known is not None:
        return known
    where = find_device(device)
    held: list[Lock] = []

    def claim() -> tuple[bool, np.ndarray | None]:
        """Whether to continue, and the logits if another run computed them while this one waited."""
        with _told_of(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = _wait_for(folder, stop_requested)
            if lock is None:
                return False, None
            held.append(lock)
            return True, _read(kept, (len(dataset.samples), len(dataset.class_names)))

    try:
        going, logits = distributed.from_first(claim)
        if going and logits is None:
            with _told_of(folder):
                logits = _train(dataset, network, epochs, seed, where, folder, key, stop_requested, progress)
                if logits is not None and distributed.is_first():
                    _keep(logits, kept)
    finally:
        for lock in held:
            lock.release()
    return logits


@contextmanager
def _told_of(folder: Path) -> Iterator[None]:
    """Turn an error while writing the cache into a `UserError`."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"the cache {folder} cannot be written ({error.strerror}): free disk space, or set the environment "
            "variable PAPI_CACHE to another folder."
        ) from error


def _wait_for(folder: Path, stop_requested: Callable[[], bool]) -> Lock | None:
    """Wait for the lock of the folder, so that only one of several runs trains the same annotator."""
    while not stop_requested():
        try:
            return Lock(folder)
        except InUseError:
            time.sleep(0.5)
    return None


def _keep(logits: np.ndarray, file: Path) -> None:
    with replacing(file) as stream:
        np.save(stream, logits)
    for done in (file.with_name("checkpoint.pt"), checkpoint.previous(file.with_name("checkpoint.pt"))):
        done.unlink(missing_ok=True)


def _train(
    dataset: Dataset,
    name: str,
    epochs: int,
    seed: int,
    device: torch.device,
    folder: Path,
    key: str,
    stop_requested: Callable[[], bool],
    progress: Progress,
) -> np.ndarray | None:
    labels = torch.from_numpy(dataset.labels)
    candidates = torch.nn.functional.one_hot(labels, len(dataset.class_names)).bool()
    seed_torch(seed, "annotator")
    config = SupervisedConfig()
    network = build(name, dataset.input_shape, len(dataset.class_names), project=False)
    method = Supervised(network, candidates, config, truth=labels).to(device)
    samples = on_device(dataset.samples, device)
    normalise = normaliser_of(dataset, device)
    loader = Loader(
        samples,
        method.candidates,
        views_of(dataset),
        normalise,
        config.view_names,
        batch_size=BATCH_SIZE,
        seed=seed,
    )
    file = folder / "checkpoint.pt"
    state, _ = distributed.from_first(lambda: checkpoint.load_newest(file, key, torch.device("cpu")))
    events = engine.fit(
        method,
        loader,
        build_optimizer(method, OPTIM),
        learning_rate(OPTIM),
        epochs=epochs,
        evaluate=lambda _: engine.Measured(),
        resume=state,
        stop_requested=stop_requested,
    )
    done = state["epoch"] if state else 0
    for event in events:
        if isinstance(event, engine.Stepped):
            place = event.progress
            progress("training the annotator", place.epoch * place.steps + place.step + 1, epochs * place.steps)
        elif isinstance(event, engine.Snapshot):
            if distributed.is_first():
                checkpoint.save(file, event.state, key)
            done = event.state["epoch"]
    return evaluate(method.network, samples, normalise).logits.numpy() if done == epochs else None


def _content_key(dataset: Dataset, settings: dict[str, object]) -> str:
    """The cache key of an annotator: a hash of its settings, samples and labels."""
    form = repr((dataset.samples.shape, dataset.mean, dataset.std, dataset.recipe))
    learned_from = replace(dataset, test_samples=None, test_labels=None, prior=None, initial_confidence=None)
    return content_hash(learned_from, [f"{json.dumps(settings, sort_keys=True)}{form}".encode()])[:32]


def _read(file: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The logits that an earlier run saved; None if the file is missing or damaged."""
    try:
        logits: np.ndarray = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return logits if logits.shape == shape and np.isfinite(logits).all() else None
