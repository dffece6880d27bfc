"""The training loop. It writes no files: `fit` yields events that the caller saves and shows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from papi import distributed
from papi.data.loader import Loader
from papi.errors import UserError
from papi.methods.base import Method
from papi.networks import Network
from papi.randomness import seed_torch
from papi.runs.checkpoint import State
from papi.runs.schema import EpochRow
from papi.training.evaluation import Evaluation
from papi.training.optim import clear_vanished
from papi.training.stopwatch import Stopwatch
from papi.training.tally import Tally
from papi.types import Batch, Progress, StepOutput

FINITE_CHECK_STEPS = 50


@dataclass(frozen=True)
class Stepped:
    """A training step is complete."""

    progress: Progress


@dataclass(frozen=True)
class Measured:
    """The result of an evaluation: metrics for the row of the epoch, and the network's outputs for the test samples."""

    values: dict[str, float] = field(default_factory=dict)
    test: Evaluation | None = None


@dataclass(frozen=True)
class EpochEnded:
    """An epoch is complete: its row of metrics, and the network's outputs for the test samples."""

    row: EpochRow
    test: Evaluation | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything needed to resume from here. The tensors are not copies: save them before requesting the next event."""

    state: State


Event = Stepped | EpochEnded | Snapshot


class NonFiniteError(UserError):
    """The loss or the network became infinite or undefined."""


def fit(
    method: Method,
    loader: Loader,
    optimizer: torch.optim.Optimizer,
    learning_rate: Callable[[Progress], float],
    *,
    epochs: int,
    evaluate: Callable[[Method], Measured],
    truth: Tensor | None = None,
    scaler: torch.amp.GradScaler | None = None,
    clip_norm: float = 0.0,
    resume: State | None = None,
    snapshot_due: Callable[[int, float], bool] = lambda steps, seconds: False,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Train `method` from the beginning, or from the state of an earlier snapshot.

    Every epoch ends with a snapshot. Within an epoch, `snapshot_due` is called after each step with the steps and
    seconds since the last snapshot. When `stop_requested` returns True, the iteration ends after the current step with
    a snapshot. If several processes train together, a request to one of them applies to all. A `scaler` keeps
    half-precision gradients from vanishing. Gradients of the whole batch are clipped to the norm `clip_norm`, unless
    it is 0.
    """
    start, first_step, tally, clock = 0, 0, Tally(truth), Stopwatch()
    rows: list[EpochRow] = []
    if resume is not None:
        method.load_state_dict(resume["method"])
        optimizer.load_state_dict(resume["optimizer"])
        if scaler is not None:
            scaler.load_state_dict(resume["scaler"])
        start, first_step, rows = resume["epoch"], resume["step"], [EpochRow.from_json(row) for row in resume["rows"]]
        tally, clock = Tally(truth, resume["tally"]), Stopwatch(**resume["seconds"])

    distributed.equalise(method)

    def snapshot(epoch: int, step: int) -> Snapshot:
        state = State(
            method=method.state_dict(),
            optimizer=optimizer.state_dict(),
            epoch=epoch,
            step=step,
            rows=[row.to_json() for row in rows],
            tally=tally.sums,
            seconds=clock.saved(),
        )
        if scaler is not None:
            state["scaler"] = scaler.state_dict()
        return Snapshot(state)

    for epoch in range(start, epochs):
        method.train()
        if first_step == 0:
            new_phase = method.start_epoch(Progress(epoch, epochs, 0, len(loader), loader.seed), loader.plain)
            if new_phase:
                optimizer.state.clear()
            clear_vanished(optimizer)
        unchecked: list[Tensor] = []  # losses of the last steps
        saved_step = first_step
        for step, batch in enumerate(loader.epoch(epoch, first_step), first_step):
            progress = Progress(epoch, epochs, step, len(loader), loader.seed)
            output = train_step(method, optimizer, learning_rate(progress), batch, progress, scaler, clip_norm)
            tally.add(output, batch)
            unchecked.append(output.loss.detach())
            last = step + 1 == len(loader)
            due = snapshot_due(step + 1 - saved_step, clock.since_save())
            stop, due = distributed.any_of(stop_requested(), due)
            save = not last and (stop or due)
            if save or last or (step + 1) % FINITE_CHECK_STEPS == 0:
                finite = torch.stack(unchecked).isfinite().tolist()
                first_bad = -1 if all(finite) else step + 1 - len(finite) + finite.index(False)
                _require_finite("loss", first_bad, loader, epoch)
                unchecked = []
            if save or last:  # the loss does not reflect the last update yet
                _require_finite("network", -1 if _is_finite(method.network) else step, loader, epoch)
            yield Stepped(progress)
            if save:
                saved_step = step + 1
                yield snapshot(epoch, saved_step)
                if stop:
                    return
        values = {"epoch": epoch, "learning_rate": learning_rate(progress), **tally.means()}
        values["images_per_second"] = float(tally.sums["samples"]) / clock.lap()
        values["cpu_seconds"] = clock.cpu_lap()
        measured = evaluate(method)
        rows.append(EpochRow.from_json(values | measured.values | {"seconds": clock.total()}))
        tally, first_step = Tally(truth), 0
        clock.new_lap()
        yield EpochEnded(rows[-1], measured.test)
        yield snapshot(epoch + 1, 0)
        if distributed.any_of(stop_requested())[0]:
            return


def train_step(
    method: Method,
    optimizer: torch.optim.Optimizer,
    learning_rate: float,
    batch: Batch,
    progress: Progress,
    scaler: torch.amp.GradScaler | None = None,
    clip_norm: float = 0.0,
) -> StepOutput:
    """Run one training step. It returns losses of the whole batch, even if this process holds only a part of it.

    Parameters that a phase does not use get zero gradients, so weight decay and momentum still apply to them.
    """
    part = distributed.locate(len(batch.index)) if batch.whole is None else distributed.split(batch.whole)
    # Dropout differs between processes, as it does between the rows of a batch.
    seed_torch(progress.seed, f"step{part.rank or ''}", progress.epoch, progress.step)
    with distributed.step_on(part):
        output: StepOutput = method(batch, progress)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter in parameters:  # `zero_grad` takes four times as long
        parameter.grad = None
    loss = part.share * output.loss  # the parts sum to the mean over the whole batch
    with distributed.adding_gradients(parameters):
        (loss if scaler is None else scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
    if clip_norm:
        if scaler is not None:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, clip_norm)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("share", 1.0)
    if scaler is None:
        optimizer.step()
    else:  # if gradients overflow, the step is skipped and the scale is reduced
        scaler.step(optimizer)
        scaler.update()
    with distributed.step_on(part):
        method.after_step(batch, progress)
    losses = part.mean({"loss": output.loss, **output.logs}, distributed.own_statistics(method))
    if method.averaged is not None:
        method.averaged.follow(method.network, progress)
    return replace(output, loss=losses.pop("loss"), logs=losses)


def _is_finite(network: Network) -> bool:
    values = (value for value in network.state_dict().values() if value.is_floating_point())
    return all(bool(torch.isfinite(value).all()) for value in values)


def _require_finite(what: str, first_bad_step: int, loader: Loader, epoch: int) -> None:
    """Stop if a step had non-finite values. Its samples are recomputed from the epoch and the step."""
    if first_bad_step < 0:
        return
    indices = distributed.gather_rows(next(loader.epoch(epoch, first_bad_step)).index).tolist()
    raise NonFiniteError(
        f"the {what} was not finite in epoch {epoch + 1}, step {first_bad_step + 1}, with the training samples "
        f"{', '.join(map(str, indices[:8]))}{f' and {len(indices) - 8} more' if len(indices) > 8 else ''}. "
        "Earlier checkpoints are kept; train again with a smaller --optim.lr in a new folder."
    )
