"""Two processes of one thread each, as `torchrun` starts them, against one process of two threads.

Both train on the same batches and take turns, so that a busy machine affects both alike. Processes that share a batch
wait for each other once per step, and send gradients while others are still being computed.
"""

import multiprocessing
import os
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import NamedTuple

import torch

from benchmarks.measure import Apart, Line
from benchmarks.step import RESNET, SMALL
from benchmarks.training import Task, Training
from papi import distributed
from papi.training.allocator import keep_freed_memory

PROCESSES = 2
EFFICIENT = 0.9  # of the speed of one process with as many threads


class Seconds(NamedTuple):
    """How long a step takes."""

    wall: float
    cpu: float


class Together:
    """Several processes of one thread each; each trains on its part of every batch. A turn runs some steps."""

    def __init__(self, task: Task, steps: int, count: int = PROCESSES) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.ends, self.processes = [], []
        for rank in range(count):
            mine, other = context.Pipe()
            process = context.Process(target=_train, args=(other, task, steps, rank, count, port), daemon=True)
            process.start()
            other.close()
            self.ends.append(mine)
            self.processes.append(process)

    def __enter__(self) -> "Together":
        return self

    def __exit__(self, *_: object) -> None:
        for end in self.ends:
            end.send(False)
        for process in self.processes:
            process.join()

    def turn(self) -> Seconds:
        """Seconds per step: of the process that takes longest, and CPU seconds of all."""
        for end in self.ends:
            end.send(True)
        found = [end.recv() for end in self.ends]
        return Seconds(max(each.wall for each in found), sum(each.cpu for each in found))


def _train(connection: Connection, task: Task, steps: int, rank: int, count: int, port: int) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()}
    keep_freed_memory()
    torch.set_num_threads(1)
    with distributed.joined(torch.device("cpu"), timedelta(minutes=2)):
        training = Training(task)
        distributed.equalise(training.method)
        while connection.recv():
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(steps):
                training.step()
            connection.send(Seconds((time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps))


def efficiency(task: Task, times: int, steps: int) -> Line:
    """The speed of two processes as a share of that of one with two threads: the fastest turn of each."""
    alone, together = [], []
    with Apart(Training, task, ours=True) as one, Together(task, steps) as both:
        for _ in range(1 + times):
            together.append(both.turn().wall)
            alone.append(sum(one.call("step")[0] for _ in range(steps)) / steps)
    reference, ours = min(alone[1:]), min(together[1:])  # the first turn allocates memory
    item = f"{task.network} step, B={task.batch}, {PROCESSES} processes vs. {PROCESSES} threads"
    return Line(item, reference, ours, reference / ours, EFFICIENT)


def measure(quick: bool) -> Iterator[Line]:
    threads = torch.get_num_threads()
    torch.set_num_threads(PROCESSES)
    try:
        yield efficiency(SMALL, 4 if quick else 12, 5)
        if not quick:
            yield efficiency(RESNET, 6, 1)
    finally:
        torch.set_num_threads(threads)
