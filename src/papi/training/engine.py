"""The training loop and the evaluation. They write no files: `fit` yields events for its caller to keep and to show."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from papi import distributed
from papi.data.loader import Loader
from papi.data.views.images import Normalise
from papi.errors import UserError
from papi.methods.base import Method
from papi.methods.state import Prototypes
from papi.networks import Network
from papi.randomness import seed_torch
from papi.training.tally import Tally
from papi.types import Batch, Progress, StepOutput

FINITE_CHECK_STEPS = 50
EVALUATION_BATCH = 1000


@dataclass(frozen=True)
class Stepped:
    """A step is done."""

    progress: Progress


@dataclass(frozen=True)
class EpochEnded:
    """An epoch is done; its row of measurements."""

    row: dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """All that is needed to go on from here. The tensors are live: save them before asking for the next event."""

    state: dict[str, Any]


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
    evaluate: Callable[[Method], dict[str, float]],
    truth: Tensor | None = None,
    scaler: torch.amp.GradScaler | None = None,
    resume: dict[str, Any] | None = None,
    snapshot_due: Callable[[int, float], bool] = lambda steps, seconds: False,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Train `method` from the beginning, or from the state of an earlier snapshot.

    Every epoch ends with a snapshot; within one, `snapshot_due` is asked after each step with the steps and seconds
    since the last. When `stop_requested`, the step is finished, a snapshot taken, and the iteration ends. Of processes
    that train together, all do what one of them is asked for. A `scaler` keeps the gradients of half precision from
    vanishing.
    """
    start, first_step, rows, tally, clock = 0, 0, [], Tally(truth), Stopwatch()
    if resume is not None:
        method.load_state_dict(resume["method"])
        optimizer.load_state_dict(resume["optimizer"])
        if scaler is not None:
            scaler.load_state_dict(resume["scaler"])
        start, first_step, rows = resume["epoch"], resume["step"], list(resume["rows"])
        tally, clock = Tally(truth, resume["tally"]), Stopwatch(**resume["seconds"])

    distributed.equalise(method)

    def snapshot(epoch: int, step: int) -> Snapshot:
        state = {"method": method.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "step": step}
        if scaler is not None:
            state["scaler"] = scaler.state_dict()
        return Snapshot(state | {"rows": rows, "tally": tally.sums, "seconds": clock.saved()})

    for epoch in range(start, epochs):
        method.train()
        if first_step == 0:
            new_phase = method.start_epoch(Progress(epoch, epochs, 0, len(loader), loader.seed), loader.plain)
            if new_phase:
                optimizer.state.clear()
        first_bad = torch.tensor(-1, device=loader.samples.device)
        saved_step = first_step
        for step, batch in enumerate(loader.epoch(epoch, first_step), first_step):
            progress = Progress(epoch, epochs, step, len(loader), loader.seed)
            output = train_step(method, optimizer, learning_rate(progress), batch, progress, scaler)
            tally.add(output, batch)
            first_bad = torch.where(torch.isfinite(output.loss.detach()) | (first_bad >= 0), first_bad, step)
            last = step + 1 == len(loader)
            due = snapshot_due(step + 1 - saved_step, clock.since_save())
            stop, due = distributed.any_of(stop_requested(), due)
            save = not last and (stop or due)
            if save or last or (step + 1) % FINITE_CHECK_STEPS == 0:
                _require_finite("loss", int(first_bad), loader, epoch)
            if save or last:  # the loss knows nothing yet of the last update
                _require_finite("network", -1 if _is_finite(method.network) else step, loader, epoch)
            yield Stepped(progress)
            if save:
                saved_step = step + 1
                yield snapshot(epoch, saved_step)
                if stop:
                    return
        row = {"epoch": epoch, "learning_rate": learning_rate(progress), **tally.means()}
        row["images_per_second"] = float(tally.sums["samples"]) / clock.lap()
        row["cpu_seconds"] = clock.cpu_lap()
        row |= evaluate(method)
        row["seconds"] = clock.total()
        rows.append(row)
        tally, first_step = Tally(truth), 0
        clock.new_lap()
        yield EpochEnded(row)
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
) -> StepOutput:
    """One step; the losses it returns are those of the whole batch, of which this process may hold a part.

    Parameters that a phase leaves idle get zero gradients: weight decay and momentum go on for them.
    """
    part = distributed.locate(len(batch.index))
    # Dropout differs between the processes, as it does between the rows of a batch.
    seed_torch(progress.seed, f"step{part.rank or ''}", progress.epoch, progress.step)
    output: StepOutput = method(batch, progress)
    optimizer.zero_grad()
    loss = part.share * output.loss  # the parts add up to the mean over the whole batch
    (loss if scaler is None else scaler.scale(loss)).backward()  # type: ignore[no-untyped-call]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    distributed.add_gradients(parameters)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    if scaler is None:
        optimizer.step()
    else:  # a step whose gradients overflow is left out, and the next is scaled less
        scaler.step(optimizer)
        scaler.update()
    method.after_step(batch, progress)
    distributed.average_statistics(method, part.share)
    losses = part.mean({"loss": output.loss, **output.logs})
    return replace(output, loss=losses.pop("loss"), logs=losses)


def _is_finite(network: Network) -> bool:
    values = (value for value in network.state_dict().values() if value.is_floating_point())
    return all(bool(torch.isfinite(value).all()) for value in values)


def _require_finite(what: str, first_bad_step: int, loader: Loader, epoch: int) -> None:
    """Stop at what is not finite. The samples are found again from the place of the step in the run."""
    if first_bad_step < 0:
        return
    indices = distributed.gather_rows(next(loader.epoch(epoch, first_bad_step)).index).tolist()
    raise NonFiniteError(
        f"the {what} was not finite in epoch {epoch + 1}, step {first_bad_step + 1}, with the training samples "
        f"{', '.join(map(str, indices[:8]))}{f' and {len(indices) - 8} more' if len(indices) > 8 else ''}. "
        "What was saved before is kept; train again with a smaller --optim.lr in a new folder."
    )


def find_device(name: str) -> torch.device:
    """A device by name; `auto` takes a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = distributed.own_gpu(torch.device(name))
        if device.type not in ("cpu", "cuda"):
            raise UserError(f"--device {name} is not supported. Use cpu, cuda or auto.")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {name} is not available on this machine. Use cpu or auto.") from error
    return device


def peak_memory(device: torch.device) -> int:
    """The most bytes so far: of tensors on a GPU, else of the whole process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":  # does not tell
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def half_precision(name: str, device: torch.device) -> tuple[torch.dtype | None, torch.amp.GradScaler | None]:
    """What `fp32`, `bf16` or `fp16` means on a device: the type to compute in, if another, and a scaler, if needed."""
    if name == "fp16" and device.type == "cpu":
        raise UserError("--precision fp16 needs a GPU: processors have no fast arithmetic for it. Use fp32 or bf16.")
    dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[name]
    return dtype, torch.amp.GradScaler(device.type) if name == "fp16" else None


class Stopwatch:
    """Seconds of a run, over all its parts: in total, in the training steps of this epoch, since the last save.

    The time that processors worked on the steps of this epoch, in all processes, is kept beside: it hardly depends on
    what else runs.
    """

    def __init__(self, total: float = 0.0, lap: float = 0.0, cpu_lap: float = 0.0) -> None:
        now = time.monotonic()
        self._start, self._lap_start, self._save = now - total, now - lap, now
        self._cpu_lap_start = time.process_time() - (cpu_lap if distributed.is_first() else 0.0)

    def total(self) -> float:
        return time.monotonic() - self._start

    def lap(self) -> float:
        return time.monotonic() - self._lap_start

    def cpu_lap(self) -> float:
        own = torch.tensor(time.process_time() - self._cpu_lap_start, dtype=torch.float64)
        return float(distributed.total({"seconds": own})["seconds"])

    def new_lap(self) -> None:
        self._lap_start, self._cpu_lap_start = time.monotonic(), time.process_time()

    def since_save(self) -> float:
        return time.monotonic() - self._save

    def saved(self) -> dict[str, float]:
        """What another stopwatch goes on from."""
        self._save = time.monotonic()
        return {"total": self.total(), "lap": self.lap(), "cpu_lap": self.cpu_lap()}


class Evaluation(NamedTuple):
    """What the network says about images, in evaluation mode, on the CPU."""

    logits: Tensor  # (N, K) float32 of the linear classifier
    embedding: Tensor  # (N, d) unit vectors
    prototype_scores: Tensor | None  # (N, K) similarities; None without prototypes

    @property
    def probabilities(self) -> Tensor:
        """`(N, K)` of the linear classifier."""
        return self.logits.softmax(1)

    def calibrated(self, temperature: float) -> Tensor:
        """Probabilities `(N, K)` at a temperature: above 1, a model that is too sure of itself becomes more modest."""
        return (self.logits / temperature).softmax(1)


@torch.inference_mode()
def evaluate(
    network: Network, images: Tensor, normalise: Normalise, prototypes: Prototypes | None = None
) -> Evaluation:
    """Pass over images `(N, C, H, W) uint8` without changing the network's state; processes share them out."""
    part = distributed.split(len(images))
    was_training = network.training
    network.eval()
    logits, embeddings = [], []
    for some in torch.split(images[part.own], EVALUATION_BATCH):
        output = network(normalise(some))
        logits.append(output.logits.float().cpu())
        embeddings.append(network.project(output.features).cpu())
    network.train(was_training)
    embedding = part.gather(torch.cat(embeddings))
    # Before a class is seen its prototype is zero and every score ties: there is nothing to report yet.
    seen = prototypes is not None and bool((prototypes.value != 0).any())
    scores = embedding @ prototypes.value.cpu().T if prototypes is not None and seen else None
    return Evaluation(part.gather(torch.cat(logits)), embedding, scores)
