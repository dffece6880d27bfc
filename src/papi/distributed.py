"""Many processes that train one model together: the only module that touches torch.distributed.

Under `torchrun` every process holds the same network, the same memory and a contiguous part of each batch. Gradients
are averaged; what a method remembers, or compares across the batch, is gathered first. So all processes stay equal, and
do together what one would do alone. Without `torchrun` every function here gives back what it was given.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from papi.errors import UserError

T = TypeVar("T")

TIMEOUT = timedelta(minutes=10)  # for what the others need longest between two meetings: reading data, saving


class LostProcessError(UserError):
    """Another process of the run has ended, or does not answer any more."""


@contextmanager
def joined(device: torch.device, timeout: timedelta = TIMEOUT) -> Iterator[None]:
    """Join the other processes that `torchrun` has started, and leave them at the end; alone, there is nothing to do.

    A process that waits for one that has died ends with LostProcessError: at once if the connection is gone, else
    after `timeout`.
    """
    if launched_processes() == 1:
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        store, own_rank, count = next(distributed.rendezvous("env://", timeout=timeout))  # type: ignore[attr-defined]
        store = _store_of_this_start(store, own_rank, count, timeout)
        distributed.init_process_group(backend, store=store, rank=own_rank, world_size=count, timeout=timeout)
        yield
    except (RuntimeError, distributed.DistError) as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error).lower():
            raise LostProcessError(
                "another process of this run has ended or does not answer any more. The last checkpoint is kept: start "
                "the same command again to continue, with --max-restarts to have torchrun do so by itself."
            ) from error
        raise
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _store_of_this_start(store: Any, own_rank: int, count: int, timeout: timedelta) -> Any:
    """A part of the store for the processes that were started together.

    `torchrun` keeps the store when it starts all processes again: in it are the addresses of those that are gone, and
    whoever is quick would wait for them. So the first names the start, and answers each of the others.
    """
    own_name = uuid.uuid4().hex
    if own_rank == 0:
        store.set("start", own_name)
        for other in range(1, count):
            guest = store.get(f"{own_name}/{other}").decode()
            store.set(f"{own_name}/{guest}", "welcome")
        return distributed.PrefixStore(own_name, store)  # type: ignore[attr-defined]
    end = time.monotonic() + timeout.total_seconds()
    while True:
        start = store.get("start").decode()
        store.set(f"{start}/{own_rank}", own_name)
        try:
            store.wait([f"{start}/{own_name}"], timedelta(seconds=1))
            return distributed.PrefixStore(start, store)  # type: ignore[attr-defined]
        except distributed.DistStoreError:  # no answer yet, or the name is that of an earlier start
            if time.monotonic() > end:
                raise


def launched_processes() -> int:
    """How many processes `torchrun` has started for this run, on all machines; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_gpu(device: torch.device) -> torch.device:
    """Of the GPUs of a machine, each of its processes takes its own; other devices stay."""
    if launched_processes() == 1 or device.type != "cuda":
        return device
    own, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if device.index is not None:
        raise UserError(f"--device {device} would be shared by all processes: use --device cuda.")
    if own >= count:
        raise UserError(f"there are more processes than GPUs on this machine: use torchrun --nproc-per-node {count}.")
    return torch.device("cuda", own)


def rank() -> int:
    """The number of this process among those of the run; 0 alone."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes train together; 1 alone."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the process that reads and writes the run's files, and talks."""
    return rank() == 0


def from_first(make: Callable[[], T]) -> T:
    """What `make` gives in the first process, for all. A UserError of the first is raised in all of them."""
    if world_size() == 1:
        return make()
    message: list[Any] = [None, None]
    if is_first():
        try:
            message = [make(), None]
        except UserError as error:
            message = [None, error]
    distributed.broadcast_object_list(message, src=0)
    made, failure = message
    if failure is not None:
        raise failure
    result: T = made
    return result


def any_of(*flags: bool) -> tuple[bool, ...]:
    """Which of the flags are set in any process. Clocks and signals differ between processes: so they decide alike."""
    if world_size() == 1:
        return flags
    votes = torch.tensor(flags, dtype=torch.int32)
    distributed.all_reduce(votes, distributed.ReduceOp.MAX)
    return tuple(bool(vote) for vote in votes)


def total(values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each number `()` summed over the processes, in float64."""
    if world_size() == 1:
        return values
    device = next(iter(values.values())).device  # constants among them may be on the CPU
    sums = torch.stack([value.to(device, torch.float64) for value in values.values()])
    distributed.all_reduce(sums)
    return dict(zip(values, sums, strict=True))


@dataclass(frozen=True)
class Part:
    """The rows of a batch that this process holds, and where they lie in the whole."""

    sizes: tuple[int, ...]  # rows in each process
    rank: int

    @property
    def total(self) -> int:
        """Rows of the whole batch."""
        return sum(self.sizes)

    @property
    def own(self) -> slice:
        """The rows of this process within the whole batch."""
        start = sum(self.sizes[: self.rank])
        return slice(start, start + self.sizes[self.rank])

    @property
    def share(self) -> float:
        """The part of the whole batch that this process holds, between 0 and 1."""
        return self.sizes[self.rank] / self.total

    def gather(self, rows: Tensor) -> Tensor:
        """The rows `(B, …)` of the whole batch, in its order. Gradients find their way back to where rows came from."""
        if len(self.sizes) == 1:
            return rows
        gathered: Tensor = _Gather.apply(rows, self)  # type: ignore[no-untyped-call]
        return gathered

    def mean(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        """Means `()` over the rows of each process → means over the whole batch."""
        if len(self.sizes) == 1:
            return values
        # A process without rows has no mean: it would be 0/0.
        return total({k: v.detach() * self.share if self.share else torch.zeros_like(v) for k, v in values.items()})


def split(count: int) -> Part:
    """Share a batch out evenly. Nobody gets a single row, because batch-norm needs two: the last rather get none."""
    busy = max(1, min(world_size(), count // 2))
    sizes = [count * (i + 1) // busy - count * i // busy for i in range(busy)]
    return Part((*sizes, *[0] * (world_size() - busy)), rank())


def locate(count: int) -> Part:
    """The place of `count` rows that this process holds among those of all; every process has to ask."""
    if world_size() == 1:
        return Part((count,), 0)
    # On the CPU, also where training is on GPUs: so no GPU is waited for.
    sizes = [torch.tensor(0) for _ in range(world_size())]
    distributed.all_gather(sizes, torch.tensor(count))
    return Part(tuple(map(int, sizes)), rank())


def gather_rows(rows: Tensor) -> Tensor:
    """The rows `(B, …)` that all processes hold, one after another, with gradient."""
    return locate(len(rows)).gather(rows)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, part: Part) -> Tensor:
        ctx.part = part
        longest = max(part.sizes)  # all have to send the same number of rows
        sent = rows.new_zeros(longest, *rows.shape[1:])
        sent[: len(rows)] = rows
        received = [torch.empty_like(sent) for _ in part.sizes]
        distributed.all_gather(received, sent)
        return torch.cat([each[:size] for each, size in zip(received, part.sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        whole = gradients[0].clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(whole)
        return whole[ctx.part.own], None


@torch.no_grad()
def equalise(module: nn.Module) -> None:
    """Begin alike: all processes take the first one's weights and memory. On GPUs, batch-norm sees the whole batch."""
    if world_size() == 1:
        return
    if next(module.parameters()).is_cuda:
        nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
    for tensor in module.state_dict().values():
        distributed.broadcast(tensor, src=0)


@torch.no_grad()
def add_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Give each parameter the sum of the gradients that all processes have for it.

    All of them at once and in the same order in every step. DistributedDataParallel would send some while others are
    still computed, but changes its order after the first step: a run that goes on from a checkpoint would add up the
    same numbers of three processes in another order, and end with other bytes.
    """
    if world_size() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    for gradient, new in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
        gradient.copy_(new.view_as(gradient))


@torch.no_grad()
def average_statistics(module: nn.Module, share: float) -> None:
    """Batch-norm on CPUs sees the rows of its process alone: give all the mean of what they have seen of the data."""
    if world_size() == 1:
        return
    local = [m for m in module.modules() if isinstance(m, _BatchNorm) and not isinstance(m, nn.SyncBatchNorm)]
    running = [each for m in local for each in (m.running_mean, m.running_var) if each is not None]
    if not running:
        return
    mean = share * torch.cat(running)
    distributed.all_reduce(mean)
    for each, new in zip(running, torch.split(mean, [len(each) for each in running]), strict=True):
        each.copy_(new)
