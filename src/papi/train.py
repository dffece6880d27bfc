"""Trains a run: from a config to a trained model in a run folder."""

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
from papi.setup.default_encoder import with_network
from papi.setup.encoder import card_of_encoder, encoder_of, find_encoder, seen_by, with_tuning
from papi.setup.recorded import with_recorded
from papi.setup.run import Run, prepare
from papi.setup.run import Trained as Trained
from papi.setup.settings import complete
from papi.setup.settings import settings_for as settings_for
from papi.setup.stopped import is_stopped, with_named_code
from papi.setup.threads import set_threads, threads_for
from papi.training import engine
from papi.training.devices import find_device, half_precision, peak_memory, precision_notes, require_system
from papi.training.engine import EpochEnded, Snapshot, Stepped
from papi.training.evaluation import Evaluation
from papi.training.memory import large_image_notes
from papi.training.optim import build_optimizer, learning_rate
from papi.training.selection import Pick, has_stopped_rising

EPOCHS_SHARE = 0.25  # fraction of the parent's epochs: its weights are a good start
RATE_SHARE = 0.1  # fraction of the parent's learning rate: the full rate would destroy what was learned


@dataclass(frozen=True)
class Started:
    """Data and network are ready; training starts or resumes."""

    settings: Settings
    dataset: Dataset
    statistics: dict[str, float]  # of the candidate sets
    parameters: int
    passes: Passes  # through the encoder per step
    device: str
    threads: int
    processes: int
    epoch: int  # where training starts: at zero, or where it was interrupted
    step: int
    steps: int  # per epoch
    problems: tuple[str, ...]  # notes about the data and damaged files


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
        """Whether the run was already complete, so that nothing was trained."""
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
    """Load the data of a config, create candidate sets, and train in the folder `path`, as `papi train` does.

    This is a generator: training advances when you request the next event. Under `torchrun`, all processes call it
    together, and only the first one accesses the folder.

    Parameters
    ----------
    config
        The options of `papi train`.
    path
        The folder of the run. An interrupted run in it continues.
    stop_requested
        Called after each step; True stops the run with a checkpoint.
    progress
        Called during slow preparation: decoding images, training an annotator.
    finish_now
        Do not train: finish an interrupted run at its last checkpoint.

    Yields
    ------
    Event
        `Started`, then `Stepped`, `EpochEnded` and `Saved` repeatedly, and at the end `Finished` or `Stopped`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from papi.config import RunConfig
    >>> from papi.train import Finished, train
    >>> config = RunConfig(data="digits", limit=200, epochs=1, threads=1)
    >>> for event in train(config, Path("runs/short")):
    ...     if isinstance(event, Finished):
    ...         print(event.summary.epochs)
    1
    """
    require_system()
    require_apart(config, path)
    folder = RunFolder(path)
    if finish_now and not is_stopped(path) and not folder.summary_file.exists():
        raise UserError(f"{path} does not contain an interrupted run: leave out --finish-now to train.")
    with distributed.joined(find_device(config.device)), _owned(folder):
        # The annotator's predictions depend on it, too.
        config = replace(config, threads=set_threads(config.threads, folder))
        config, notes = with_network(config, folder)
        asked = with_tuning(config)
        config = with_recorded(asked, folder)
        encoder = find_encoder(config)
        preparation = None if encoder is None else encoder.preparation
        images = load_dataset(config, progress=progress, preparation=preparation).limited(config.limit)
        images = replace(images, notes=(*notes, *images.notes))
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
            found = head_first(dataset, candidates, asked, encoder, stop_requested, progress)
            if found is None:
                yield Stopped(0, 0)
                return
            dataset, start = found
        yield from _fit(
            dataset, candidates, settings, folder, stop_requested, start, encoder=encoder, finish_now=finish_now
        )


def head_first(
    photos: Dataset,
    candidates: np.ndarray,
    config: RunConfig,
    encoder: Pretrained,
    stop_requested: StopRequested = _never,
    progress: PreparationProgress = silent,
) -> tuple[Dataset, HeadStart] | None:
    """Train a head on the frozen encoder. Returns the photos with its confidence, and its classifier for unnormalised
    features. None if interrupted.

    A resumed run repeats this, which takes seconds, because the embeddings are cached.
    """
    frozen = replace(
        config, tune="head", head="linear", epochs=None, batch_size=None, drop_last=None, optim=OptimConfig(),
        select="last", stop_when="never", data_holdout=None, data_views=0, calibrate=False, compile=False, threads=None,
    )  # fmt: skip
    seen = seen_by(encoder, photos, frozen, stop_requested, progress, roots=False)  # a root's slope is infinite at zero
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
    """Train on samples and candidate sets `(N, K) bool`. With a folder, everything is saved and a run can be resumed.

    Weights start from those of `parent` if given, otherwise at random. A `network` replaces the one in the settings. If
    the samples are features of a pretrained `encoder`, it becomes part of the model.
    """
    require_system()
    if folder is not None and network is not None and reference(network) is None:
        raise UserError(
            f"the network {title(network)} cannot be rebuilt from a run folder: put its factory into an importable "
            "module, or train without a folder."
        )
    with _owned(folder):
        settings = replace(settings, threads=set_threads(settings.threads, folder))
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
    """Continue the run in `path` in a new folder, with labels decided by a person as in `papi.runs.fixing.fix`.

    It uses the settings of this parent run, with fewer epochs and a smaller learning rate, and starts from its weights,
    its prototypes if it has any, and its confidence. A method or network from outside the package must be named again:
    no code is imported only because a file names it.
    """
    finished = RunFolder(path)
    record = finished.read_record()
    if record is None or not finished.arrays_file.exists():
        raise UserError(f"{path} does not contain a finished run: specify a folder in which `papi train` has finished.")
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
    """Stop if the data are not those of the run: decisions would apply to the wrong images."""
    if not same_data(record.data_hash, dataset, candidates):
        raise UserError(
            f"the data of {path} have changed since it was trained: restore the original data, or train a new run on "
            "the current data."
        )


def _shortened(config: RunConfig, epochs: int | None) -> RunConfig:
    """Use fewer epochs, a smaller learning rate and no warm-up, which is not needed after the first training."""
    settings = complete(config, features=False, sets_given=True)  # a record has every value, so no defaults are used
    warms_up = "warmup_epochs" in {field.name for field in fields(find_method(config.method).Config)}
    return replace(
        config,
        epochs=epochs or max(1, round(EPOCHS_SHARE * settings.epochs)),
        optim=replace(config.optim, lr=RATE_SHARE * settings.optim.lr),
        option=(*config.option, "warmup_epochs=0") if warms_up else config.option,
    )


@contextmanager
def _owned(folder: RunFolder | None) -> Iterator[None]:
    """Lock the folder; if there are several processes, the first one locks it for all."""
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
    """Prepare the run, resume it, train, and evaluate it at the end."""
    with threads_for(settings, dataset, network):
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
            raise UserError("there is no readable checkpoint: leave out --finish-now to train the run again.")
        yield _started(run, point)
        ending = yield from _loop(run, point.state, folder, stop_requested, finish_now)
        if not finish_now and not _is_over(settings, ending.state):
            yield Stopped(ending.state["epoch"], ending.state["step"])
            return
        yield _conclude(run, ending, folder)


def _is_over(settings: Settings, state: checkpoint.State) -> bool:
    """Whether training is complete: all epochs are done, or the criterion no longer improves."""
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
            *run.method.config.doubts(run.settings.batch_size, run.candidates.shape[1]),
            *memory_notes(run.settings.method, run.method.candidates),
            *large_image_notes(run.dataset, run.method, run.settings.batch_size, run.device),
            *precision_notes(run.settings.precision, run.device),
            *point.problems,
        ),
    )


@dataclass(frozen=True)
class _Point:
    """The point at which a run resumes."""

    state: checkpoint.State | None = None  # None: from the beginning
    problems: tuple[str, ...] = ()
    summary: Summary | None = None  # another process has finished the run during preparation


def _resume(run: Run, folder: RunFolder | None) -> _Point:
    """Write the record of the run, and find its newest checkpoint."""
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
    """The result of the training loop."""

    state: checkpoint.State
    pick: Pick
    test: Evaluation | None  # outputs of the last epoch's network for the test samples
    memory: int


def _loop(
    run: Run,
    state: checkpoint.State | None,
    folder: RunFolder | None,
    stop_requested: StopRequested,
    finish_now: bool,
) -> Generator[Event, None, _Ending]:
    """Train, save and yield the events of the engine. A run that is complete or to be finished now is only loaded."""
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
        elif test is None:  # an evaluation needs additional memory
            memory = peak_memory(run.device)
        yield event
    assert state is not None, "every epoch ends with a snapshot"
    return _Ending(state, pick, test, memory)


def _conclude(run: Run, ending: _Ending, folder: RunFolder | None) -> Finished:
    """Evaluate the model of the selected epoch, and save everything."""
    state, test = ending.state, ending.test
    rows = [EpochRow.from_json(row) for row in state["rows"]]
    if state["step"]:  # training ended in the middle of an epoch
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
    """The summary of a finished run. Stop if the folder belongs to another run or has no model."""
    if folder is None:
        return None
    folder.refuse_other_run(identity)
    summary = folder.read_summary()
    missing = [file.name for file in (folder.config_file, folder.model_file, folder.arrays_file) if not file.exists()]
    if summary is not None and missing:
        raise UserError(
            f"{folder.summary_file} belongs to a finished run, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: delete summary.json to train here, or choose another "
            "folder with --out."
        )
    return summary


def _require_same_data(identity: Values) -> None:
    """Stop if a process, perhaps on another machine, has read different data from the first."""
    own = identity["data_hash"]
    if distributed.any_of(own != distributed.from_first(lambda: own))[0]:
        raise UserError("the processes of this run have read different data: use the same files on every machine.")
