"""Where everything meets: from a config to a trained model in a run folder."""

import hashlib
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from papi import checkpoint, distributed, engine, preparation
from papi.config import NEUTRAL, RunConfig, parse_options, to_dict
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
from papi.metrics import CRITERIA
from papi.networks import build, compile_encoders, require_compiler, require_fitting
from papi.optim import build_optimizer, learning_rate
from papi.packed import memory_notes, packed, worth_packing
from papi.parent import Parent
from papi.presets import complete
from papi.randomness import seed_torch
from papi.runfolder import RunFolder, identity_hash
from papi.selection import Pick, hold_out

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
    processes: int
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
    already: bool = False  # it was complete before; then there is nothing below
    method: Method | None = None
    card: ModelCard | None = None
    arrays: dict[str, np.ndarray] | None = None  # as in arrays.npz


Event = Started | Stepped | EpochEnded | Saved | Stopped | Finished


def _never() -> bool:
    return False


def train(
    config: RunConfig, path: Path, stop_requested: Callable[[], bool] = _never, progress: PreparationProgress = silent
) -> Iterator[Event]:
    """Read the data a config names, make candidate sets, and fit in the folder `path`.

    `progress` hears of what takes its time before training: decoding images, training an annotator. Under `torchrun`
    all processes do this together; the first alone touches the folder.
    """
    folder = RunFolder(path)
    with distributed.joined(engine.find_device(config.device)), _owned(folder):
        _set_threads(config, folder)  # an annotator's answers depend on it, too
        dataset = preparation.load_dataset(config, progress=progress).limited(config.limit)
        config = complete(preparation.settled(config, dataset))
        candidates = preparation.candidate_sets(dataset, config, stop_requested, progress)
        if candidates is None:
            yield Stopped(0, 0)
            return
        yield from fit(dataset, candidates, config, folder, stop_requested)


@contextmanager
def _owned(folder: RunFolder | None) -> Iterator[None]:
    """Hold the folder; of many processes, the first holds it for all."""
    with ExitStack() as held:
        if folder is not None:
            distributed.from_first(lambda: held.enter_context(folder.owned()))
        yield


def fit(
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    folder: RunFolder | None = None,
    stop_requested: Callable[[], bool] = _never,
    parent: Parent | None = None,
) -> Iterator[Event]:
    """Train on images and candidate sets `(N, K) bool`. In a folder everything is kept, and a run can be continued.

    Weights start from those of `parent`, if there is one, else at random.
    """
    with _owned(folder):
        yield from _fit(dataset, candidates, config, folder, stop_requested, parent)


def _fit(
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    folder: RunFolder | None,
    stop_requested: Callable[[], bool],
    parent: Parent | None,
) -> Iterator[Event]:
    config = complete(config)
    device = engine.find_device(config.device)
    _, scaler = engine.half_precision(config.precision, device)
    require_compiler(config.compile, device)
    method_class = find_method(config.method)
    method_config = parse_options(method_class.Config, config.options)
    identity = _identity(config, asdict(method_config), dataset, candidates)
    if parent is not None:
        identity["parent"] = parent.model
    _require_same_data(identity)
    folder = folder if distributed.is_first() else None
    summary = distributed.from_first(lambda: _summary_of(folder, identity))
    if summary is not None:
        yield Finished(summary, already=True)
        return
    _set_threads(config, folder)
    training, training_sets, held_out = hold_out(dataset, candidates, _known(config.data_holdout), config.seed, device)
    method = _build_method(method_class, method_config, training, training_sets, config, device, parent)
    statistics = generators.statistics(candidates, dataset.labels)

    def last_state() -> tuple[dict[str, Any] | None, list[str]]:
        if folder is None:
            return None, []
        _prepare(folder, config, identity, dataset, candidates, statistics, parent)
        found, passed_over = checkpoint.load_newest(
            folder.checkpoint_file, identity_hash(identity), torch.device("cpu")
        )
        folder.write_rows(found["rows"] if found else [])
        return found, passed_over + (_changed_versions(folder) if found else [])

    state, problems = distributed.from_first(last_state)
    pick = Pick(config.select, state.get("picked") if state else None)
    normalise = normaliser(dataset.input_shape, dataset.mean, dataset.std, device)
    loader = _build_loader(method, training, config, normalise, device)
    evaluator = Evaluator(training, normalise, device, held_out)
    yield Started(
        config=config,
        dataset=dataset,
        statistics=statistics,
        parameters=sum(parameter.numel() for parameter in method.network.parameters()),
        passes=method.passes_with(method_config),
        device=str(device),
        threads=torch.get_num_threads(),
        processes=distributed.world_size(),
        epoch=state["epoch"] if state else 0,
        step=state["step"] if state else 0,
        steps=len(loader),
        problems=(*dataset.notes, *memory_notes(config.method, method.candidates), *problems),
    )
    memory = engine.peak_memory(device)
    for event in engine.fit(
        method,
        loader,
        build_optimizer(method, config.optim),
        learning_rate(config.optim),
        epochs=_known(config.epochs),
        evaluate=evaluator,
        truth=None if training.labels is None else torch.from_numpy(training.labels).to(device),
        scaler=scaler,
        resume=state,
        snapshot_due=lambda steps, seconds: steps >= config.checkpoint.steps or seconds >= config.checkpoint.seconds,
        stop_requested=stop_requested,
    ):
        if isinstance(event, Snapshot):
            state = event.state | {"picked": pick.saved}
            if folder is not None:
                with folder.writing(folder.checkpoint_file):
                    checkpoint.save(folder.checkpoint_file, state, identity_hash(identity))
                yield Saved(folder.checkpoint_file)
            continue
        if isinstance(event, EpochEnded):
            pick.see(event.row, method)
            if folder is not None:
                folder.append_row(event.row)
        if isinstance(event, Stepped) and evaluator.last is None:  # an evaluation takes memory of its own
            memory = engine.peak_memory(device)
        yield event

    assert state is not None
    if state["epoch"] < _known(config.epochs):
        yield Stopped(state["epoch"], state["step"])
        return
    if pick.saved is not None:
        pick.restore(method)
        evaluator.last = None
    temperature = evaluator.temperature(method, loader.images) if config.calibrate else 1.0
    arrays, resolved = evaluator.conclude(method, loader.images, temperature)
    summary = _summarise(config, dataset, statistics, state["rows"], pick, len(loader.images)) | resolved
    summary["peak_memory"] = memory
    card = _card(config, dataset, method, temperature)
    if folder is not None:
        with folder.writing(folder.model_file):
            save_model(folder.model_file, method.network, card)
        folder.write_arrays(folder.arrays_file, arrays)
        folder.write_summary(summary)
    yield Finished(summary, method=method, card=card, arrays=arrays)


def _summary_of(folder: RunFolder | None, identity: dict[str, Any]) -> dict[str, Any] | None:
    """The summary of a folder with a finished run. Stop if the folder belongs to another one."""
    if folder is None:
        return None
    folder.refuse_other_run(identity)
    return folder.read_summary()


def _require_same_data(identity: dict[str, Any]) -> None:
    """Stop if a process, perhaps on another machine, has read other data than the first."""
    own = identity["data_hash"]
    if distributed.any_of(own != distributed.from_first(lambda: own))[0]:
        raise UserError("the processes of this run have read different data: every machine needs the same files.")


def _identity(
    config: RunConfig, method_config: dict[str, Any], dataset: Dataset, candidates: np.ndarray
) -> dict[str, Any]:
    """All that decides the result of a run, as JSON values. Data are told by a hash of their sets and some samples."""
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in method_config.items()}
    settings = {name: value for name, value in to_dict(config).items() if name not in NEUTRAL or value != NEUTRAL[name]}
    return settings | {"option": options, "data_hash": data_hash(dataset, candidates)}


def data_hash(dataset: Dataset, candidates: np.ndarray) -> str:
    """What tells these samples and sets from others."""
    content = hashlib.sha256(np.packbits(candidates).tobytes())
    content.update(dataset.images[:: max(1, len(candidates) // HASHED_SAMPLES)].tobytes())
    if dataset.initial_confidence is not None:
        content.update(dataset.initial_confidence.tobytes())
    return content.hexdigest()


def _prepare(
    folder: RunFolder,
    config: RunConfig,
    identity: dict[str, Any],
    dataset: Dataset,
    candidates: np.ndarray,
    statistics: dict[str, float],
    parent: Parent | None,
) -> None:
    """Write what a run is before its first step, unless an earlier part of it has."""
    folder.create()
    folder.refuse_other_run(identity)  # which may have begun here while this one got ready
    begun = folder.read_config() is not None
    if not begun or not folder.candidates_file.exists():
        arrays = {"candidates": candidates}
        if dataset.file_names is not None:
            arrays["file_names"] = np.array(dataset.file_names)
        folder.write_arrays(folder.candidates_file, arrays)
    if begun:
        return
    folder.write_config(
        {
            "config": to_dict(config),
            "identity": identity,
            **({} if parent is None else {"parent": parent.record}),
            "classes": list(dataset.class_names),
            "candidates": statistics,
            "threads": torch.get_num_threads(),
            "versions": {"python": platform.python_version()} | _versions(),
            "command": sys.argv,
        }
    )


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("papi-pll", "torch", "numpy")}


def _changed_versions(folder: RunFolder) -> list[str]:
    """What computes now and computed otherwise when the run began: it may round otherwise, too."""
    before = (folder.read_config() or {}).get("versions") or {}
    return [
        f"this run began with {name} {before[name]} and goes on with {now}: it may no longer end bit-equal."
        for name, now in _versions().items()
        if before.get(name, now) != now
    ]


def _set_threads(config: RunConfig, folder: RunFolder | None) -> None:
    """As the run began, because results are bit-equal only for the same number of threads; a new one, as asked."""

    def recorded() -> int | None:
        record = folder.read_config() if folder is not None else None
        threads: int | None = record.get("threads") if record else config.threads
        if folder is not None and config.threads not in (None, threads) and folder.read_summary() is None:
            raise UserError(
                f"the run in {folder.path} began with {threads} threads, and with {config.threads} it could not go on "
                "bit-equal. Leave --threads out to continue it, or train in a new folder with --out."
            )
        return threads

    threads = distributed.from_first(recorded)
    if threads:
        torch.set_num_threads(threads)


def _build_method(
    method_class: type[Method],
    method_config: Any,
    dataset: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    device: torch.device,
    parent: Parent | None,
) -> Method:
    require_fitting(_known(config.network), dataset.kind)
    seed_torch(config.seed, "network")
    network = build(
        _known(config.network),
        dataset.images.shape[1],
        len(dataset.class_names),
        project=method_class.projects(method_config),
    )
    network.autocast, _ = engine.half_precision(config.precision, device)  # before a method copies the network
    if parent is not None:
        parent.hand_weights(network)
    extras: dict[str, Any] = {}
    if method_class.needs_truth(method_config):
        if dataset.labels is None:
            raise UserError(
                f"--method {config.method} with these options needs true labels, and {dataset.name} has none."
            )
        extras["truth"] = torch.from_numpy(dataset.labels)
    if method_class.needs_shape(method_config):
        extras["shape"] = dataset.input_shape
    mask = torch.from_numpy(candidates)
    pack = method_class.packs(method_config) and worth_packing(mask)
    method = method_class(network, packed(mask) if pack else mask, method_config, **extras)
    if parent is not None:
        parent.hand_prototypes(method)
    if dataset.initial_confidence is not None and method.confidence is not None:
        method.confidence.start_from(torch.from_numpy(dataset.initial_confidence))
    if config.compile:
        compile_encoders(method)
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


def _card(config: RunConfig, dataset: Dataset, method: Method, temperature: float) -> ModelCard:
    return ModelCard(
        network=_known(config.network),
        class_names=dataset.class_names,
        shape=dataset.input_shape,
        mean=dataset.mean,
        std=dataset.std,
        projects=method.network.projector is not None,
        temperature=temperature,
    )


def _summarise(
    config: RunConfig,
    dataset: Dataset,
    statistics: dict[str, float],
    rows: list[dict[str, Any]],
    pick: Pick,
    images: int,
) -> dict[str, Any]:
    """The result of a run. Its accuracy is that of the epoch picked without true labels, by default the last.

    The accuracies of the last epoch and of the best on the test images stand beside it.
    """
    result = pick.row(rows)
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
        "select": config.select,
        "picked_epoch": result["epoch"],
        **{name: result.get(name) for name in ("test_accuracy", "prototype_accuracy", *CRITERIA)},
        "calibration_error": None,
        "uncalibrated_error": result.get("calibration_error"),
        "test_accuracy_last": rows[-1].get("test_accuracy"),
        "test_accuracy_best": max(accuracies, default=None),
        "test_accuracy_last10": sum(last10) / len(last10) if last10 else None,
        "training_images": images,
        "held_out_images": len(dataset.images) - images,
        "seconds": rows[-1]["seconds"],
        "cpu_seconds": sum(row["cpu_seconds"] for row in rows),
        "images_per_second": len(rows) / sum(1 / row["images_per_second"] for row in rows),
    }


def _known(value: Any) -> Any:
    """A value that `complete` has filled in."""
    assert value is not None
    return value
