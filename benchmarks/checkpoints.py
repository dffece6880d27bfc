"""What saving costs, as a share of the time of training at the default interval.

    python benchmarks/checkpoints.py

A run saves at every epoch end and, within long epochs, every 60 seconds. For each network the steps of an epoch are
timed, and a save of the whole state: what it costs of the time between two saves must stay below 2 %. The quickest of
several counts, in seconds and in seconds of the processor: on a busy machine only the second is of use.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from papi import run
from papi.config import CandidatesConfig, CheckpointConfig, RunConfig
from papi.engine import Stepped
from papi.run import Saved, Started

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


def measure() -> Iterator[tuple[str, float, float, float]]:
    """Name, the seconds between two saves, and what share of them a save takes: on the clock, and of the processor."""
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
        clock, processor = (cost / min(interval, one * started.steps) for cost, one in zip(save, step, strict=True))
        yield f"{name} ({size:.0f} MB)", min(interval, step[0] * started.steps), clock, processor


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


if __name__ == "__main__":
    for name, between, clock, processor in measure():
        kept = "kept" if clock <= TARGET else "missed"
        print(
            f"{name:20} saved every {between:.1f} s: {clock:.2%} of the time, {processor:.2%} of the processor's "
            f"(target {TARGET:.0%}: {kept})"
        )
