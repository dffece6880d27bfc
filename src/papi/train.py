"""Where everything meets: from a config to a trained model in a run folder."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from papi import distributed
from papi.config import RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.data.views.features import normaliser
from papi.errors import UserError
from papi.methods import find_method
from papi.methods.base import Method
from papi.methods.options import parse_options
from papi.methods.packed import memory_notes
from papi.networks import require_compiler
from papi.runs import checkpoint
from papi.runs.folder import RunFolder, identity_hash
from papi.runs.model import ModelCard, save_model
from papi.runs.parent import Parent
from papi.runs.record import begin, changed_versions, identity_of, summarise
from papi.setup import data as preparation
from papi.setup.build import build_loader, build_method, card_of, known
from papi.setup.settings import complete
from papi.training import engine
from papi.training.engine import EpochEnded, Snapshot, Stepped
from papi.training.evaluator import Evaluator
from papi.training.optim import build_optimizer, learning_rate
from papi.training.selection import Pick, hold_out


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
    identity = identity_of(config, asdict(method_config), dataset, candidates)
    if parent is not None:
        identity["parent"] = parent.model
    _require_same_data(identity)
    folder = folder if distributed.is_first() else None
    summary = distributed.from_first(lambda: _summary_of(folder, identity))
    if summary is not None:
        yield Finished(summary, already=True)
        return
    _set_threads(config, folder)
    training, training_sets, held_out = hold_out(dataset, candidates, known(config.data_holdout), config.seed, device)
    method = build_method(method_class, method_config, training, training_sets, config, device, parent)
    statistics = generators.statistics(candidates, dataset.labels)

    def last_state() -> tuple[dict[str, Any] | None, list[str], dict[str, Any] | None]:
        if folder is None:
            return None, [], None
        begin(folder, config, identity, dataset, candidates, statistics, parent, device)
        meanwhile = folder.read_summary()  # another process may have trained here while this one got ready
        if meanwhile is not None:
            return None, [], meanwhile
        found, passed_over = checkpoint.load_newest(
            folder.checkpoint_file, identity_hash(identity), torch.device("cpu")
        )
        folder.write_rows(found["rows"] if found else [])
        return found, passed_over + (changed_versions(folder, device) if found else []), None

    state, problems, summary = distributed.from_first(last_state)
    if summary is not None:
        yield Finished(summary, already=True)
        return
    pick = Pick(config.select, state.get("picked") if state else None)
    normalise = normaliser(dataset.input_shape, dataset.mean, dataset.std, device)
    loader = build_loader(method, training, config, normalise, device)
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
        epochs=known(config.epochs),
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
    if state["epoch"] < known(config.epochs):
        yield Stopped(state["epoch"], state["step"])
        return
    if pick.saved is not None:
        pick.restore(method)
        evaluator.last = None
    temperature = evaluator.temperature(method, loader.samples) if config.calibrate else 1.0
    arrays, resolved = evaluator.conclude(method, loader.samples, temperature)
    summary = summarise(config, dataset, statistics, state["rows"], pick, len(loader.samples)) | resolved
    summary["peak_memory"] = memory
    card = card_of(config, dataset, method, temperature)
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
