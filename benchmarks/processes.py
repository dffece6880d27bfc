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

import torch

from benchmarks.measure import Apart, Line
from benchmarks.step import RESNET, SMALL
from benchmarks.training import Task, Training
from papi import distributed
from papi.training.allocator import keep_freed_memory

PROCESSES = 2
EFFICIENT = 0.9  # of the speed of one process with as many threads


class Together:
    """As many processes as threads; each trains on its part of every batch."""

    def __init__(self, task: Task, steps: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.ends, self.processes = [], []
        for rank in range(PROCESSES):
            mine, other = context.Pipe()
            process = context.Process(target=_train, args=(other, task, steps, rank, port), daemon=True)
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

    def step(self) -> float:
        """Seconds per step, of the process that takes longest."""
        for end in self.ends:
            end.send(True)
        return max(float(end.recv()) for end in self.ends)


def _train(connection: Connection, task: Task, steps: int, rank: int, port: int) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": PROCESSES, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()}
    keep_freed_memory()
    torch.set_num_threads(1)
    with distributed.joined(torch.device("cpu"), timedelta(minutes=2)):
        training = Training(task)
        distributed.equalise(training.method)
        while connection.recv():
            start = time.perf_counter()
            for _ in range(steps):
                training.step()
            connection.send((time.perf_counter() - start) / steps)


def efficiency(task: Task, times: int, steps: int) -> Line:
    """The speed of two processes as a share of that of one with two threads: the fastest turn of each."""
    alone, together = [], []
    with Apart(Training, task, ours=True) as one, Together(task, steps) as both:
        both.step(), [one.call("step") for _ in range(steps)]  # the first steps allocate memory
        for _ in range(times):
            together.append(both.step())
            alone.append(sum(one.call("step")[0] for _ in range(steps)) / steps)
    reference, ours = min(alone), min(together)
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
