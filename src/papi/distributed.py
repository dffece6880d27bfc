"""Training of one model by several processes. Only this module uses torch.distributed.

Under `torchrun`, every process holds the same network, the same state and a contiguous part of each batch. Gradients
are averaged. Whatever a method stores or compares across the batch is gathered first, so all processes stay identical
and compute the same as a single process. Without `torchrun`, the functions here return their input unchanged.
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

TIMEOUT = timedelta(minutes=10)  # longest wait for other processes, for example while they read data or save


BUCKET = 2**20  # gradient values that are sent together
_gradient_groups: list[Any] = []  # the group of the run that this process has joined


class LostProcessError(UserError):
    """Another process of the run has ended or no longer responds."""


@contextmanager
def joined(device: torch.device, timeout: timedelta = TIMEOUT) -> Iterator[None]:
    """Join the other processes started by `torchrun`, and leave them at the end. A single process does nothing.

    If a process waits for one that has died, LostProcessError is raised: at once if the connection is lost, otherwise
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
        _gradient_groups.append(distributed.new_group(timeout=timeout))
        yield
    except (RuntimeError, distributed.DistError) as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error).lower():
            raise LostProcessError(
                "another process of this run has ended or no longer responds. The last checkpoint is kept: start the "
                "same command again to continue, with --max-restarts to have torchrun do so automatically."
            ) from error
        raise
    finally:
        _gradient_groups.clear()
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _store_of_this_start(store: Any, own_rank: int, count: int, timeout: timedelta) -> Any:
    """A separate part of the store for the processes that were started together.

    `torchrun` keeps the store when it restarts all processes. It still contains the addresses of ended processes, and
    a fast process would wait for them. So the first process gives this start a new name and answers each of the others.
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
        except distributed.DistStoreError:  # no answer yet, or the name of an earlier start
            if time.monotonic() > end:
                raise


def launched_processes() -> int:
    """Number of processes that `torchrun` has started for this run on all machines; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_gpu(device: torch.device) -> torch.device:
    """Assign each process on a machine its own GPU; other devices are returned unchanged."""
    if launched_processes() == 1 or device.type != "cuda":
        return device
    own, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if device.index is not None:
        raise UserError(f"--device {device} cannot be shared by several processes: use --device cuda.")
    if own >= count:
        raise UserError(f"there are more processes than GPUs on this machine: use torchrun --nproc-per-node {count}.")
    return torch.device("cuda", own)


def rank() -> int:
    """The rank of this process in the run; 0 for a single process."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def world_size() -> int:
    """Number of processes that train together; 1 for a single process."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the process that reads and writes the run's files and prints messages."""
    return rank() == 0


def from_first(make: Callable[[], T]) -> T:
    """Call `make` in the first process and return its result in all. A UserError is raised in all of them."""
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
    """Which flags are set in any process. Clocks and signals differ between processes, but all must decide the same."""
    if world_size() == 1:
        return flags
    votes = torch.tensor(flags, dtype=torch.int32)
    distributed.all_reduce(votes, distributed.ReduceOp.MAX)
    return tuple(bool(vote) for vote in votes)


def total(values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each number `()` summed over the processes, in float64."""
    if world_size() == 1 or not values:
        return values
    device = next(iter(values.values())).device  # constants may be on the CPU
    sums = torch.stack([value.to(device, torch.float64) for value in values.values()])
    distributed.all_reduce(sums)
    return dict(zip(values, sums, strict=True))


@dataclass(frozen=True)
class Part:
    """The rows of a batch that this process holds, and their position in the whole batch."""

    sizes: tuple[int, ...]  # rows in each process
    rank: int

    @property
    def total(self) -> int:
        """Number of rows in the whole batch."""
        return sum(self.sizes)

    @property
    def own(self) -> slice:
        """The rows of this process within the whole batch."""
        start = sum(self.sizes[: self.rank])
        return slice(start, start + self.sizes[self.rank])

    @property
    def share(self) -> float:
        """The fraction of the whole batch that this process holds, between 0 and 1."""
        return self.sizes[self.rank] / self.total

    def gather(self, rows: Tensor) -> Tensor:
        """The rows `(B, …)` of the whole batch, in order. Gradients flow back to the processes that hold the rows."""
        if len(self.sizes) == 1:
            return rows
        gathered: Tensor = _Gather.apply(rows, self)  # type: ignore[no-untyped-call]
        return gathered

    def gather_all(self, *rows: Tensor) -> tuple[Tensor, ...]:
        """Like `gather`, for several tensors `(B, …)` of the same rows, in one message and without gradients."""
        if len(self.sizes) == 1:
            return rows
        flat = [each.detach().unsqueeze(-1).flatten(1).contiguous() for each in rows]
        sent = [each.view(torch.uint8) for each in flat]
        received = torch.split(_gathered(torch.cat(sent, 1), self), [each.shape[1] for each in sent], 1)
        return tuple(
            whole.contiguous().view(each.dtype).view(self.total, *each.shape[1:])
            for whole, each in zip(received, rows, strict=True)
        )

    @torch.no_grad()
    def mean(self, values: dict[str, Tensor], statistics: Sequence[Tensor] = ()) -> dict[str, Tensor]:
        """Means `()` over the rows of each process → means over the whole batch.

        `statistics` `(d,)` of the rows of each process are averaged in place, in the same message.
        """
        if len(self.sizes) == 1:
            return values
        # The mean of a process without rows would be 0/0.
        known = [*(each if self.share else torch.zeros_like(each) for each in values.values()), *statistics]
        device = next(iter(values.values())).device  # constants may be on the CPU
        sums = torch.cat([self.share * each.to(device, torch.float64).flatten() for each in known])
        distributed.all_reduce(sums)
        averaged = torch.split(sums[len(values) :], [len(each) for each in statistics])
        for old, new in zip(statistics, averaged, strict=True):
            old.copy_(new)
        return dict(zip(values, sums, strict=False))


def split(count: int) -> Part:
    """Split a batch evenly. Batch-norm needs two rows, so no process gets only one; the last ones may get none."""
    busy = max(1, min(world_size(), count // 2))
    sizes = [count * (i + 1) // busy - count * i // busy for i in range(busy)]
    return Part((*sizes, *[0] * (world_size() - busy)), rank())


_steps: list[Part] = []  # the running step, if any


@contextmanager
def step_on(part: Part) -> Iterator[None]:
    """Within a step, the positions of the batch's rows are known and `locate` needs no communication."""
    _steps.append(part)
    try:
        yield
    finally:
        _steps.pop()


def locate(count: int) -> Part:
    """The position of this process's `count` rows among those of all processes. Every process must call it.

    In a step, these are the rows of its batch.
    """
    if world_size() == 1:
        return Part((count,), 0)
    if _steps:
        assert count == _steps[-1].sizes[_steps[-1].rank], "the rows of a step are those of its batch"
        return _steps[-1]
    # On the CPU even if training uses GPUs, to avoid waiting for a GPU.
    sizes = [torch.tensor(0) for _ in range(world_size())]
    distributed.all_gather(sizes, torch.tensor(count))
    return Part(tuple(map(int, sizes)), rank())


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows `(B, …)` of all processes, with gradients."""
    return locate(len(rows)).gather(rows)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, part: Part) -> Tensor:
        ctx.part = part
        return _gathered(rows, part)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        whole = gradients[0].clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(whole)
        return whole[ctx.part.own], None


def _gathered(rows: Tensor, part: Part) -> Tensor:
    longest = max(part.sizes)  # all processes must send the same number of rows
    sent = rows.new_zeros(longest, *rows.shape[1:])
    sent[: len(rows)] = rows
    received = [torch.empty_like(sent) for _ in part.sizes]
    distributed.all_gather(received, sent)
    return torch.cat([each[:size] for each, size in zip(received, part.sizes, strict=True)])


@torch.no_grad()
def equalise(module: nn.Module) -> None:
    """Copy the first process's weights and state to all processes. On GPUs, batch-norm uses the whole batch."""
    if world_size() == 1:
        return
    if next(module.parameters()).is_cuda:
        nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
    for tensor in module.state_dict().values():
        distributed.broadcast(tensor, src=0)


@contextmanager
def adding_gradients(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Sum gradients over all processes during a backward pass that gives every parameter a gradient.

    Gradients are sent in buckets, the last parameters first, as soon as a bucket is complete, while others are still
    being computed. Buckets and their order are the same in every step. DistributedDataParallel changes its order after
    the first step: a resumed run would sum the gradients of three processes in a different order, and its results
    would not be bit-equal.
    """
    if world_size() == 1:
        yield
        return
    buckets = _buckets(parameters)
    number: dict[Tensor, int] = {parameter: k for k, bucket in enumerate(buckets) for parameter in bucket}
    waiting = [len(bucket) for bucket in buckets]
    sent: list[tuple[Tensor, Any]] = []

    def arrived(parameter: Tensor) -> None:
        waiting[number[parameter]] -= 1
        while len(sent) < len(buckets) and not waiting[len(sent)]:
            sent.append(_send(buckets[len(sent)]))

    learning = [each for each in parameters if each.requires_grad]
    hooks = [each.register_post_accumulate_grad_hook(arrived) for each in learning]  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    sent += [_send(bucket) for bucket in buckets[len(sent) :]]
    for bucket, (flat, work) in zip(buckets, sent, strict=True):
        work.wait()
        for parameter, new in zip(bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(new.view_as(parameter))


def _buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Groups of at least BUCKET parameter values, the last group first, as gradients are computed from the end."""
    buckets: list[list[nn.Parameter]] = [[]]
    for parameter in reversed(parameters):
        if sum(each.numel() for each in buckets[-1]) >= BUCKET:
            buckets.append([])
        buckets[-1].insert(0, parameter)
    return buckets


@torch.no_grad()
def _send(bucket: list[nn.Parameter]) -> tuple[Tensor, Any]:
    """Start to sum the gradients of a bucket. They use a separate group, because other messages may come in between."""
    flat = torch.cat([each.grad.flatten() for each in bucket if each.grad is not None])
    return flat, distributed.all_reduce(flat, group=_gradient_groups[-1], async_op=True)


def own_statistics(module: nn.Module) -> list[Tensor]:
    """The batch-norm statistics that differ between processes: on CPUs, each process only sees its own rows."""
    if world_size() == 1:
        return []
    local = [m for m in module.modules() if isinstance(m, _BatchNorm) and not isinstance(m, nn.SyncBatchNorm)]
    return [each for m in local for each in (m.running_mean, m.running_var) if each is not None]
