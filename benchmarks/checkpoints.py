"""What saving costs, as a share of the time of training at the default interval.

A run saves at every epoch end and, within long epochs, every 60 seconds. For each network the steps of an epoch are
timed, and a save of the whole state: what it costs of the time between two saves must stay below 2 %. The quickest of
several counts, in seconds and in seconds of the processor: on a busy machine only the second is of use.
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
    # The default of `papi train`, with its real epochs; and the paper's network, whose epochs are hours on a CPU.
    "quick": RunConfig(threads=1, device="cpu", checkpoint=CheckpointConfig("8")),
    "resnet18": RunConfig(
        preset="paper", data="fashion-mini", batch_size=16, threads=1, device="cpu", checkpoint=CheckpointConfig("2"),
        candidates=CandidatesConfig(flip_rate=0.1),
    ),
}  # fmt: skip
SAVES = 5
TARGET = 0.02


def costs() -> Iterator[tuple[str, float, float, float]]:
    """Name, the seconds between two saves, those of a save, and what share of the processor's time a save takes."""
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
        item = f"a save, {name}, share of the time between two ({processor:.2%} of the processor's)"
        yield Line(item, between, save, save / between, TARGET, at_most=True)
    torch.set_num_threads(threads)  # the runs had their own


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
