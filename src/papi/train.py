"""Where everything meets: from a config to a trained model in a run folder."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from papi import distributed
from papi.config import RunConfig, Settings, Values
from papi.data import candidates as generators
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.data.digest import same_data
from papi.data.loader import Loader
from papi.data.views.choose import normaliser
from papi.errors import UserError
from papi.files.outside import needs_import
from papi.methods import find_method
from papi.methods.base import Method
from papi.methods.config import Passes
from papi.methods.packed import memory_notes
from papi.networks import Factory, reference, title
from papi.runs import checkpoint
from papi.runs.decisions import read_decisions
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash, identity_of
from papi.runs.model import ModelCard, save_model
from papi.runs.parent import Parent, read_parent
from papi.runs.record import begin, changed_versions, record_of, sets_of
from papi.runs.schema import Arrays, EpochRow, Record, Summary
from papi.setup.build import build_loader, build_method, card_of
from papi.setup.data import candidate_sets, load_dataset, require_apart
from papi.setup.settings import complete
from papi.training import engine
from papi.training.devices import find_device, half_precision, peak_memory, require_compiler, require_system
from papi.training.engine import EpochEnded, Snapshot, Stepped
from papi.training.evaluation import Evaluation
from papi.training.evaluator import Evaluator
from papi.training.optim import build_optimizer, learning_rate
from papi.training.resuming import fitted_state
from papi.training.selection import Pick, hold_out
from papi.training.summary import summarise

EPOCHS_SHARE = 0.25  # of a parent's epochs: its weights are a good start
RATE_SHARE = 0.1  # of a parent's learning rate: a full one would first undo what was learned


@dataclass(frozen=True)
class Started:
    """Data and network are ready; training begins or goes on."""

    settings: Settings
    dataset: Dataset
    statistics: dict[str, float]  # of the candidate sets
    parameters: int
    passes: Passes  # through the encoder in a step
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
class Trained:
    """What a run leaves in memory."""

    method: Method
    card: ModelCard
    arrays: Arrays


@dataclass(frozen=True)
class Finished:
    """The run is complete."""

    summary: Summary
    trained: Trained | None = None

    @property
    def already(self) -> bool:
        """Whether it was complete before, so that nothing was trained."""
        return self.trained is None


Event = Started | Stepped | EpochEnded | Saved | Stopped | Finished
StopRequested = Callable[[], bool]


def _never() -> bool:
    return False


def train(
    config: RunConfig, path: Path, stop_requested: StopRequested = _never, progress: PreparationProgress = silent
) -> Iterator[Event]:
    """Read the data a config names, make candidate sets, and fit in the folder `path`.

    `progress` hears of what takes its time before training: decoding images, training an annotator. Under `torchrun`
    all processes do this together; the first alone touches the folder.
    """
    require_system()
    require_apart(config, path)
    folder = RunFolder(path)
    with distributed.joined(find_device(config.device)), _owned(folder):
        _set_threads(config.threads, folder)  # an annotator's answers depend on it, too
        dataset = load_dataset(config, progress=progress).limited(config.limit)
        settings = settings_for(config, dataset)
        candidates = candidate_sets(dataset, settings, stop_requested, progress)
        if candidates is None:
            yield Stopped(0, 0)
            return
        yield from _fit(dataset, candidates, settings, folder, stop_requested)


def fit(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    folder: RunFolder | None = None,
    stop_requested: StopRequested = _never,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
) -> Iterator[Event]:
    """Train on samples and candidate sets `(N, K) bool`. In a folder everything is kept, and a run can be continued.

    Weights start from those of `parent`, if there is one, else at random. A `network` takes the place of the one that
    the settings name.
    """
    require_system()
    if folder is not None and network is not None and reference(network) is None:
        raise UserError(
            f"the network {title(network)} could not be built again from a run folder: put its factory into a module "
            "that can be imported, or train without a folder."
        )
    with _owned(folder):
        _set_threads(settings.threads, folder)
        yield from _fit(dataset, candidates, settings, folder, stop_requested, parent, network)


def settings_for(config: RunConfig, dataset: Dataset) -> Settings:
    """What is run if a config is trained on a dataset."""
    return complete(config, features=dataset.kind == "features", sets_given=dataset.candidates is not None)


def train_on(
    path: Path,
    decisions_file: Path,
    folder: Path,
    *,
    epochs: int | None = None,
    data_dir: Path | None = None,
    method: str | None = None,
    network: str | None = None,
    stop_requested: StopRequested = _never,
    progress: PreparationProgress = silent,
) -> Iterator[Event]:
    """Train the run in `path` on in a new folder, with a person's decisions as the only candidates of their images.

    Settings are the parent's, but for fewer epochs and a smaller learning rate. It starts from the parent's weights,
    its prototypes if it has them, and its confidence. A method or a network from outside the package has to be named
    once more: no code is imported only because a file names it.
    """
    finished = RunFolder(path)
    record = finished.read_record()
    if record is None or not finished.arrays_file.exists():
        raise UserError(f"{path} holds no finished run: give a folder in which `papi train` has ended.")
    config = _with_named_code(finished.read_run_config(), path, method, network)
    config = replace(config, data_dir=data_dir or config.data_dir)
    sets, arrays = finished.read_kept()
    candidates = sets.candidates
    dataset = load_dataset(config, progress=progress).limited(config.limit)
    _require_data_of(record, path, dataset, candidates)
    decisions = read_decisions(decisions_file, len(candidates), dataset.class_names, dataset.file_names)
    confidence = decisions.fixed_confidence(candidates, arrays.confidence)
    dataset = replace(dataset, initial_confidence=confidence, notes=decisions.notes(candidates))
    settings = settings_for(_shortened(config, epochs), dataset)
    parent = read_parent(path)
    yield from fit(dataset, decisions.fixed_sets(candidates), settings, RunFolder(folder), stop_requested, parent)


def _with_named_code(config: RunConfig, path: Path, method: str | None, network: str | None) -> RunConfig:
    """The config with what a person has named. Stop if it needs code that they have not."""
    for option, found, named in (("method", config.method, method), ("network", config.network, network)):
        if named is None and needs_import(found or ""):
            raise UserError(
                f"{path} was trained with the {option} {found}, and no code is run only because a file names it: if "
                f"you trust it, name it once more with --{option} {found}."
            )
    return replace(config, method=method or config.method, network=network or config.network)


def _require_data_of(record: Record, path: Path, dataset: Dataset, candidates: np.ndarray) -> None:
    """Stop if the data are not those of the run: a decision would hit another image."""
    if not same_data(record.data_hash, dataset, candidates):
        raise UserError(
            f"the data of {path} have changed since it was trained: bring back those it was trained on, "
            "or train a new run on what there is now."
        )


def _shortened(config: RunConfig, epochs: int | None) -> RunConfig:
    """Fewer epochs, a smaller learning rate and no warm-up: what it is for has been learned."""
    settings = complete(config, features=False, sets_given=True)  # a record has every value: nothing is filled in
    warms_up = "warmup_epochs" in {field.name for field in fields(find_method(config.method).Config)}
    return replace(
        config,
        epochs=epochs or max(1, round(EPOCHS_SHARE * settings.epochs)),
        optim=replace(config.optim, lr=RATE_SHARE * settings.optim.lr),
        option=(*config.option, "warmup_epochs=0") if warms_up else config.option,
    )


@contextmanager
def _owned(folder: RunFolder | None) -> Iterator[None]:
    """Hold the folder; of many processes, the first holds it for all."""
    with ExitStack() as held:
        if folder is not None:
            distributed.from_first(lambda: held.enter_context(folder.owned()))
        yield


def _fit(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    folder: RunFolder | None,
    stop_requested: StopRequested,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
) -> Iterator[Event]:
    """Prepare, resume, loop, conclude."""
    identity = identity_of(settings, dataset, candidates, None if parent is None else parent.model)
    _require_same_data(identity)
    folder = folder if distributed.is_first() else None
    summary = distributed.from_first(lambda: _summary_of(folder, identity))
    if summary is not None:
        yield Finished(summary)
        return
    run = _prepare(dataset, candidates, settings, identity, parent, network)
    point = distributed.from_first(lambda: _resume(run, folder))
    if point.summary is not None:
        yield Finished(point.summary)
        return
    yield run.started(point)
    ending = yield from _loop(run, point.state, folder, stop_requested)
    if ending.state["epoch"] < settings.epochs:
        yield Stopped(ending.state["epoch"], ending.state["step"])
        return
    yield _conclude(run, ending, folder)


@dataclass(frozen=True)
class _Run:
    """A run that is ready: all that its steps need."""

    settings: Settings
    identity: Values
    dataset: Dataset  # with the samples that are held out
    candidates: np.ndarray
    statistics: dict[str, float]
    device: torch.device
    parent: Parent | None
    network: Factory | nn.Module | None
    method: Method
    loader: Loader
    evaluator: Evaluator
    truth: torch.Tensor | None  # of the samples that are trained on

    def fitted(self, state: checkpoint.State) -> checkpoint.State:
        """A saved state, if this run can go on from it."""
        scaler = half_precision(self.settings.precision, self.device)[1]
        optimizer = build_optimizer(self.method, self.settings.optim)
        return fitted_state(state, self.method, optimizer, scaler, epochs=self.settings.epochs, steps=len(self.loader))

    def started(self, point: "_Point") -> Started:
        return Started(
            settings=self.settings,
            dataset=self.dataset,
            statistics=self.statistics,
            parameters=sum(parameter.numel() for parameter in self.method.network.parameters()),
            passes=self.method.config.encoder_passes,
            device=str(self.device),
            threads=torch.get_num_threads(),
            processes=distributed.world_size(),
            epoch=point.state["epoch"] if point.state else 0,
            step=point.state["step"] if point.state else 0,
            steps=len(self.loader),
            problems=(
                *self.dataset.notes,
                *memory_notes(self.settings.method, self.method.candidates),
                *point.problems,
            ),
        )


def _prepare(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    identity: Values,
    parent: Parent | None,
    network: Factory | nn.Module | None,
) -> _Run:
    device = find_device(settings.device)
    if settings.compile:
        require_compiler(device)
    training, sets, held_out = hold_out(dataset, candidates, settings.data_holdout, settings.seed, device)
    method = build_method(settings, training, sets, device, parent, network)
    normalise = normaliser(dataset.input_shape, dataset.mean, dataset.std, device)
    return _Run(
        settings=settings,
        identity=identity,
        dataset=dataset,
        candidates=candidates,
        statistics=generators.statistics(candidates, dataset.labels),
        device=device,
        parent=parent,
        network=network,
        method=method,
        loader=build_loader(method, training, settings, normalise, device),
        evaluator=Evaluator(training, normalise, device, held_out),
        truth=None if training.labels is None else torch.from_numpy(training.labels).to(device),
    )


@dataclass(frozen=True)
class _Point:
    """Where a run goes on."""

    state: checkpoint.State | None = None  # None: from the beginning
    problems: tuple[str, ...] = ()
    summary: Summary | None = None  # another process has finished the run while this one got ready


def _resume(run: _Run, folder: RunFolder | None) -> _Point:
    """Write what the run is, and find where an earlier part of it ended."""
    if folder is None:
        return _Point()
    parent = None if run.parent is None else run.parent.record
    record = record_of(run.settings, run.identity, run.dataset, run.statistics, run.device, parent)
    begin(folder, record, sets_of(run.dataset, run.candidates))
    meanwhile = folder.read_summary()
    if meanwhile is not None:
        return _Point(summary=meanwhile)
    state, passed_over = checkpoint.load_newest(
        folder.checkpoint_file, identity_hash(run.identity), torch.device("cpu"), run.fitted
    )
    folder.write_rows([EpochRow.from_json(row) for row in state["rows"]] if state else [])
    changed = changed_versions(folder.read_record(), run.device) if state else []
    return _Point(state, (*passed_over, *changed))


@dataclass(frozen=True)
class _Ending:
    """How the loop ended."""

    state: checkpoint.State
    pick: Pick
    test: Evaluation | None  # what the network of the last epoch says about the test samples
    memory: int


def _loop(
    run: _Run, state: checkpoint.State | None, folder: RunFolder | None, stop_requested: StopRequested
) -> Generator[Event, None, _Ending]:
    """Train, keep what the engine yields, and hand it on."""
    settings, test = run.settings, None
    pick = Pick(settings.select, state.get("picked") if state else None)
    memory = peak_memory(run.device)
    for event in engine.fit(
        run.method,
        run.loader,
        build_optimizer(run.method, settings.optim),
        learning_rate(settings.optim),
        epochs=settings.epochs,
        evaluate=run.evaluator.measure,
        truth=run.truth,
        scaler=half_precision(settings.precision, run.device)[1],
        resume=state,
        snapshot_due=lambda steps, seconds: (
            steps >= settings.checkpoint.steps or seconds >= settings.checkpoint.seconds
        ),
        stop_requested=stop_requested,
    ):
        if isinstance(event, Snapshot):
            state = event.state
            state["picked"] = pick.saved
            if folder is not None:
                with folder.writing(folder.checkpoint_file):
                    checkpoint.save(folder.checkpoint_file, state, identity_hash(run.identity))
                yield Saved(folder.checkpoint_file)
            continue
        if isinstance(event, EpochEnded):
            pick.see(event.row, run.method)
            test = event.test
            if folder is not None:
                folder.append_row(event.row)
        elif test is None:  # an evaluation takes memory of its own
            memory = peak_memory(run.device)
        yield event
    assert state is not None, "every epoch ends with a snapshot"
    return _Ending(state, pick, test, memory)


def _conclude(run: _Run, ending: _Ending, folder: RunFolder | None) -> Finished:
    """Measure the model of the picked epoch, and keep everything."""
    method, evaluator, samples, test = run.method, run.evaluator, run.loader.samples, ending.test
    if ending.pick.saved is not None:
        ending.pick.restore(method)
        test = None
    temperature = evaluator.temperature(method, samples) if run.settings.calibrate else 1.0
    conclusion = evaluator.conclude(method, samples, test or evaluator.test(method), temperature)
    rows = [EpochRow.from_json(row) for row in ending.state["rows"]]
    summary = summarise(
        run.settings,
        run.dataset,
        run.statistics,
        rows,
        ending.pick.row(rows),
        conclusion,
        trained_on=len(samples),
        temperature=temperature,
        peak_memory=ending.memory,
    )
    card = card_of(run.settings, run.dataset, method, temperature, run.network)
    if folder is not None:
        with folder.writing(folder.model_file):
            save_model(folder.model_file, method.network, card)
        folder.write_arrays(conclusion.arrays)
        folder.write_summary(summary)
    return Finished(summary, Trained(method, card, conclusion.arrays))


def _summary_of(folder: RunFolder | None, identity: Values) -> Summary | None:
    """The summary of a folder with a finished run. Stop if the folder belongs to another one, or holds no model."""
    if folder is None:
        return None
    folder.refuse_other_run(identity)
    summary = folder.read_summary()
    missing = [file.name for file in (folder.config_file, folder.model_file, folder.arrays_file) if not file.exists()]
    if summary is not None and missing:
        raise UserError(
            f"{folder.summary_file} says that a run has finished here, but there is no {' and no '.join(missing)}: "
            "delete summary.json to train here, or choose another folder with --out."
        )
    return summary


def _require_same_data(identity: Values) -> None:
    """Stop if a process, perhaps on another machine, has read other data than the first."""
    own = identity["data_hash"]
    if distributed.any_of(own != distributed.from_first(lambda: own))[0]:
        raise UserError("the processes of this run have read different data: every machine needs the same files.")


def _set_threads(asked: int | None, folder: RunFolder | None) -> None:
    """As the run began, because results are bit-equal only for the same number of threads; a new one, as asked."""

    def recorded() -> int | None:
        record = folder.read_record() if folder is not None else None
        threads = asked if record is None else record.threads
        if folder is not None and asked not in (None, threads) and folder.read_summary() is None:
            raise UserError(
                f"the run in {folder.path} began with {threads} threads, and with {asked} it could not go on "
                "bit-equal. Leave --threads out to continue it, or train in a new folder with --out."
            )
        return threads

    threads = distributed.from_first(recorded)
    if threads:
        torch.set_num_threads(threads)
