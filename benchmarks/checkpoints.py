"""Cost of saving checkpoints, as a share of training time at the default interval.

A run saves at the end of every epoch and, within long epochs, every 60 seconds. For each network, this measures the
time of a step and of saving the whole state. Saving must take less than 2 % of the time between two saves. The fastest
of several counts, in wall-clock and in CPU seconds: on a busy machine only the CPU seconds are meaningful.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.measure import Line
from papi import train as run
from papi.config import CandidatesConfig, CheckpointConfig, RunConfig
from papi.train import Saved, Started
from papi.training.engine import Stepped

CASES = {
    # The default of `papi train` with full epochs, and the paper's network, whose epochs take hours on a CPU.
    "quick": RunConfig(threads=1, device="cpu", checkpoint=CheckpointConfig("8")),
    "resnet18": RunConfig(
        preset="paper", data="fashion-mini", batch_size=16, threads=1, device="cpu", checkpoint=CheckpointConfig("2"),
        candidates=CandidatesConfig(flip_rate=0.1),
    ),
}  # fmt: skip
SAVES = 5
TARGET = 0.02


def costs() -> Iterator[tuple[str, float, float, float]]:
    """Name, seconds between two saves, seconds per save, and the share of CPU time spent on saving."""
    interval = CheckpointConfig().seconds
    for name, config in CASES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "run"
            events = run.train(config, folder)
            started = next(event for event in events if isinstance(event, Started))
            times: dict[type, list[tuple[float, float]]] = {Stepped: [], Saved: []}
            last = now()
            while len(times[Saved]) < SAVES:
                event = next(events)
                times[type(event)].append((now()[0] - last[0], now()[1] - last[1]))
                last = now()
            events.close()  # type: ignore[attr-defined]
            size = (folder / "checkpoint.pt").stat().st_size / 1e6
        save = [min(each) for each in zip(*times[Saved], strict=True)]
        step = [min(each) for each in zip(*times[Stepped], strict=True)]
        between = [min(interval, one * started.steps) for one in step]
        yield f"{name} ({size:.0f} MB)", between[0], save[0], save[1] / between[1]


def measure(quick: bool) -> Iterator[Line]:
    if quick:
        return
    threads = torch.get_num_threads()
    for name, between, save, processor in costs():
        item = f"checkpoint, {name}, share of the time between two saves ({processor:.2%} of CPU time)"
        yield Line(item, between, save, save / between, TARGET, at_most=True)
    torch.set_num_threads(threads)  # the runs changed it


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
