"""One run on given samples and candidate sets: resumed, trained, evaluated and saved."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from papi import distributed
from papi.config import Settings, Values
from papi.data.dataset import Dataset
from papi.errors import UserError
from papi.methods.packed import memory_notes
from papi.networks import Factory
from papi.networks.pretrained import Pretrained
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash, identity_of
from papi.runs.model import save_model
from papi.runs.parent import Parent
from papi.runs.record import begin, changed_versions, record_of, sets_of
from papi.runs.schema import EpochRow, Summary
from papi.setup.encoder import card_of_encoder
from papi.setup.run import Run, prepare
from papi.setup.threads import threads_for
from papi.train.events import Event, Finished, Saved, Started, Stopped, StopRequested
from papi.training import engine
from papi.training.devices import half_precision, peak_memory, precision_notes
from papi.training.engine import EpochEnded, Snapshot
from papi.training.evaluation import Evaluation
from papi.training.memory import large_image_notes
from papi.training.optim import build_optimizer, learning_rate
from papi.training.selection import Pick, has_stopped_rising


def one_run(
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
