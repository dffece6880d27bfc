"""Where everything meets: from a config to a trained model in a run folder."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from papi import distributed
from papi.config import OptimConfig, RunConfig, Settings, Values
from papi.data.dataset import Dataset, silent
from papi.data.dataset import Progress as PreparationProgress
from papi.data.digest import same_data
from papi.errors import UserError
from papi.methods import find_method
from papi.methods.config import Passes
from papi.methods.packed import memory_notes
from papi.networks import Factory, reference, title
from papi.networks.pretrained import Pretrained
from papi.runs import checkpoint
from papi.runs.decisions import read_decisions
from papi.runs.fixing import fix
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash, identity_of
from papi.runs.model import save_model
from papi.runs.parent import HeadStart, Parent, read_parent
from papi.runs.record import begin, changed_versions, record_of, sets_of
from papi.runs.samples import trained_on
from papi.runs.schema import EpochRow, Record, Summary
from papi.setup.data import candidate_sets, load_dataset, require_apart
from papi.setup.encoder import card_of_encoder, encoder_of, find_encoder, seen_by, with_tuning
from papi.setup.run import Run, prepare
from papi.setup.run import Trained as Trained
from papi.setup.settings import complete
from papi.setup.settings import settings_for as settings_for
from papi.setup.stopped import is_stopped, with_named_code
from papi.training import engine
from papi.training.devices import find_device, half_precision, peak_memory, require_system
from papi.training.engine import EpochEnded, Snapshot, Stepped
from papi.training.evaluation import Evaluation
from papi.training.memory import large_image_notes
from papi.training.optim import build_optimizer, learning_rate
from papi.training.selection import Pick, has_stopped_rising

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
    config: RunConfig,
    path: Path,
    stop_requested: StopRequested = _never,
    progress: PreparationProgress = silent,
    *,
    finish_now: bool = False,
) -> Iterator[Event]:
    """Read the data a config names, make candidate sets, and fit in the folder `path`.

    With `finish_now` nothing is trained: a run that was stopped ends where it is.

    `progress` hears of what takes its time before training: decoding images, training an annotator. Under `torchrun`
    all processes do this together; the first alone touches the folder.
    """
    require_system()
    require_apart(config, path)
    folder = RunFolder(path)
    if finish_now and not is_stopped(path) and not folder.summary_file.exists():
        raise UserError(f"{path} holds no run that was stopped: leave out --finish-now to train.")
    with distributed.joined(find_device(config.device)), _owned(folder):
        _set_threads(config.threads, folder)  # an annotator's answers depend on it, too
        config = with_tuning(config)
        encoder = find_encoder(config)
        preparation = None if encoder is None else encoder.preparation
        images = load_dataset(config, progress=progress, preparation=preparation).limited(config.limit)
        dataset = seen_by(encoder, images, config, stop_requested, progress)
        if dataset is None:
            yield Stopped(0, 0)
            return
        settings = settings_for(config, dataset)
        candidates = candidate_sets(dataset, settings, stop_requested, progress)
        if candidates is None:
            yield Stopped(0, 0)
            return
        start = None
        if encoder is not None and config.tune == "all":
            found = _head_first(dataset, candidates, config, encoder, stop_requested, progress)
            if found is None:
                yield Stopped(0, 0)
                return
            dataset, start = found
        yield from _fit(
            dataset, candidates, settings, folder, stop_requested, start, encoder=encoder, finish_now=finish_now
        )


def _head_first(
    photos: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    encoder: Pretrained,
    stop_requested: StopRequested,
    progress: PreparationProgress,
) -> tuple[Dataset, HeadStart] | None:
    """Train a head while the encoder is frozen: what it believes about the photos, and its classifier for features as
    the encoder gives them. None if that was stopped.

    A run that goes on does this again, which takes seconds: photos are embedded once.
    """
    frozen = replace(
        config, tune="head", head="linear", epochs=None, batch_size=None, drop_last=None, optim=OptimConfig(),
        select="last", stop_when="never", data_holdout=None, data_views=0, calibrate=False, compile=False,
    )  # fmt: skip
    seen = seen_by(encoder, photos, frozen, stop_requested, progress)
    if seen is None:
        return None
    settings = replace(settings_for(frozen, seen), candidates=settings_for(config, photos).candidates)
    last = None
    for event in _fit(seen, candidates, settings, None, stop_requested, encoder=encoder):
        last = event
        if isinstance(event, EpochEnded):
            progress("training the head", event.row.epoch + 1, settings.epochs)
    if not isinstance(last, Finished) or last.trained is None:
        return None
    classifier = last.trained.method.network.classifier
    mean, std = torch.tensor(seen.mean), torch.tensor(seen.std)
    weight = classifier.weight.detach().cpu() / std
    start = HeadStart({"weight": weight, "bias": classifier.bias.detach().cpu() - weight @ mean})
    return replace(photos, initial_confidence=last.trained.arrays.confidence), start


def fit(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    folder: RunFolder | None = None,
    stop_requested: StopRequested = _never,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
    encoder: Pretrained | None = None,
) -> Iterator[Event]:
    """Train on samples and candidate sets `(N, K) bool`. In a folder everything is kept, and a run can be continued.

    Weights start from those of `parent`, if there is one, else at random. A `network` takes the place of the one that
    the settings name. An `encoder` is the one whose features the samples are: it becomes a part of the model.
    """
    require_system()
    if folder is not None and network is not None and reference(network) is None:
        raise UserError(
            f"the network {title(network)} could not be built again from a run folder: put its factory into a module "
            "that can be imported, or train without a folder."
        )
    with _owned(folder):
        _set_threads(settings.threads, folder)
        yield from _fit(dataset, candidates, settings, folder, stop_requested, parent, network, encoder)


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
    """Train the run in `path` on in a new folder, with what a person has decided: `papi.runs.fixing.fix` says how.

    Settings are the parent's, but for fewer epochs and a smaller learning rate. It starts from the parent's weights,
    its prototypes if it has them, and its confidence. A method or a network from outside the package has to be named
    once more: no code is imported only because a file names it.
    """
    finished = RunFolder(path)
    record = finished.read_record()
    if record is None or not finished.arrays_file.exists():
        raise UserError(f"{path} holds no finished run: give a folder in which `papi train` has ended.")
    config = with_named_code(finished.read_run_config(), path, method, network)
    config = replace(config, data_dir=data_dir or config.data_dir)
    encoder = encoder_of(record, config, path, fetch=network is not None)
    sets, arrays = finished.read_kept()
    candidates = sets.candidates
    images = load_dataset(config, progress=progress, preparation=record.preparation)
    dataset = trained_on(images.limited(config.limit), sets)
    _require_data_of(record, path, dataset, candidates)
    answers = read_decisions(decisions_file, len(candidates), dataset.class_names, dataset.file_names)
    fixed = fix(answers, candidates, arrays.confidence, dataset.prior)
    dataset = replace(dataset, prior=fixed.prior, initial_confidence=fixed.confidence, notes=fixed.told)
    if len(fixed.kept) < len(candidates):
        dataset = dataset.taking(fixed.kept)
    seen = seen_by(encoder, dataset, config, stop_requested, progress)
    if seen is None:
        yield Stopped(0, 0)
        return
    settings = settings_for(_shortened(config, epochs), seen)
    decided = fixed.candidates[fixed.kept]
    yield from fit(seen, decided, settings, RunFolder(folder), stop_requested, read_parent(path), encoder=encoder)


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
    encoder: Pretrained | None = None,
    finish_now: bool = False,
) -> Iterator[Event]:
    """Prepare, resume, loop, conclude."""
    described = None if encoder is None else card_of_encoder(encoder, settings)
    identity = identity_of(settings, dataset, candidates, None if parent is None else parent.model, described)
    _require_same_data(identity)
    folder = folder if distributed.is_first() else None
    summary = distributed.from_first(lambda: _summary_of(folder, identity))
    if summary is not None:
        yield Finished(summary)
        return
    run = prepare(dataset, candidates, settings, identity, parent, network, encoder)
    point = distributed.from_first(lambda: _resume(run, folder))
    if point.summary is not None:
        yield Finished(point.summary)
        return
    if finish_now and point.state is None:
        raise UserError("there is no checkpoint that can be read: leave out --finish-now to train the run again.")
    yield _started(run, point)
    ending = yield from _loop(run, point.state, folder, stop_requested, finish_now)
    if not finish_now and not _is_over(settings, ending.state):
        yield Stopped(ending.state["epoch"], ending.state["step"])
        return
    yield _conclude(run, ending, folder)


def _is_over(settings: Settings, state: checkpoint.State) -> bool:
    """Whether there is nothing left to train: all epochs are done, or the criterion has stopped rising."""
    if state["epoch"] == settings.epochs:
        return True
    rows = [EpochRow.from_json(row) for row in state["rows"]]
    return state["step"] == 0 and has_stopped_rising(rows, settings.stop_when, settings.patience)


def _started(run: Run, point: "_Point") -> Started:
    return Started(
        settings=run.settings,
        dataset=run.dataset,
        statistics=run.statistics,
        parameters=sum(parameter.numel() for parameter in run.method.network.parameters()),
        passes=run.method.config.encoder_passes,
        device=str(run.device),
        threads=torch.get_num_threads(),
        processes=distributed.world_size(),
        epoch=point.state["epoch"] if point.state else 0,
        step=point.state["step"] if point.state else 0,
        steps=len(run.loader),
        problems=(
            *run.dataset.notes,
            *run.idle_notes,
            *memory_notes(run.settings.method, run.method.candidates),
            *large_image_notes(run.dataset, run.method, run.settings.batch_size, run.device),
            *point.problems,
        ),
    )


@dataclass(frozen=True)
class _Point:
    """Where a run goes on."""

    state: checkpoint.State | None = None  # None: from the beginning
    problems: tuple[str, ...] = ()
    summary: Summary | None = None  # another process has finished the run while this one got ready


def _resume(run: Run, folder: RunFolder | None) -> _Point:
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
    run: Run,
    state: checkpoint.State | None,
    folder: RunFolder | None,
    stop_requested: StopRequested,
    finish_now: bool,
) -> Generator[Event, None, _Ending]:
    """Train, keep what the engine yields, and hand it on. A run that is over, or to be finished now, is only loaded."""
    settings, test = run.settings, None
    over = state is not None and (finish_now or _is_over(settings, state))
    pick = Pick(settings.select, state.get("picked") if state else None)
    memory = peak_memory(run.device)
    for event in engine.fit(
        run.method,
        run.loader,
        build_optimizer(run.method, settings.optim),
        learning_rate(settings.optim),
        epochs=state["epoch"] if state is not None and over else settings.epochs,
        evaluate=run.evaluator.measure,
        truth=run.truth,
        scaler=half_precision(settings.precision, run.device)[1],
        clip_norm=settings.optim.clip_norm,
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
            if _is_over(settings, state):
                break
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


def _conclude(run: Run, ending: _Ending, folder: RunFolder | None) -> Finished:
    """Measure the model of the picked epoch, and keep everything."""
    state, test = ending.state, ending.test
    rows = [EpochRow.from_json(row) for row in state["rows"]]
    if state["step"]:  # it was finished in the middle of an epoch
        ended = run.measure_epoch(state)
        ending.pick.see(ended.row, run.method)
        rows, test = [*rows, ended.row], ended.test
        if folder is not None:
            folder.append_row(ended.row)
    trained_epochs = state["epoch"] + state["step"] / len(run.loader)
    summary, trained = run.conclude(rows, ending.pick, test, ending.memory, trained_epochs)
    if folder is not None:
        with folder.writing(folder.model_file):
            save_model(folder.model_file, trained.method.result, trained.card, trained.encoder)
        folder.write_arrays(trained.arrays)
        folder.write_summary(summary)
    return Finished(summary, trained)


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
