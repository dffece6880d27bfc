"""A rehearsal of ImageNet's size: 1,281,167 images of 64 x 64 and 1,000 classes, without the images.

    python -m benchmarks.rehearsal [--images 1281167] [--classes 1000] [--steps 20]

The images are a small file of noise with class structure, mapped repeatedly: as many pages as the real ones, on 100 MB
of disk. The encoder is tiny, so that everything else is measured: preparation, a step outside its encoder, a
checkpoint, the arrays at the end, labels and the report. Each line has the CPU time and the peak of the memory that is
not mapped from a file.
"""

import argparse
import ctypes
import mmap
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from papi.cli.report import report
from papi.config import RunConfig
from papi.data.candidates import uniform
from papi.data.dataset import Dataset
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash, identity_of
from papi.runs.labels import resolve
from papi.runs.record import begin, record_of, sets_of
from papi.runs.schema import EpochRow
from papi.setup.run import Run, prepare
from papi.setup.settings import settings_for
from papi.training import engine
from papi.training.optim import build_optimizer, learning_rate
from papi.training.selection import Pick
from papi.types import Progress

SIDE, MEAN_SET, BATCH = 64, 10, 256
DIFFERENT = 8192  # images; each takes three pages


class TinyEncoder(nn.Module):
    """Pixels averaged over 8 x 8, and one layer."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.features = 64
        self.layers = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(input_shape[0] * (SIDE // 8) ** 2, 64))

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.layers(images)
        return output


def repeated_images(file: Path, labels: np.ndarray, count: int) -> np.ndarray:
    """`(count, 3, 64, 64) uint8`: the images of a file, mapped one copy after another."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 64, (DIFFERENT, 3, SIDE, SIDE), np.uint8)
    images += (labels[:DIFFERENT] % 192).astype(np.uint8)[:, None, None, None]
    images.tofile(file)
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    size, one = count * images[0].nbytes, images.nbytes
    start = system.mmap(None, size + one, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    with file.open("rb") as stream:
        fixed = 0x10  # MAP_FIXED of Linux
        for place in range(0, size, one):
            system.mmap(start + place, one, mmap.PROT_READ, mmap.MAP_PRIVATE | fixed, stream.fileno(), 0)
    pixels = (ctypes.c_uint8 * size).from_address(start)
    return np.frombuffer(pixels, np.uint8).reshape(count, 3, SIDE, SIDE)


class Memory:
    """The peak of the memory that is not mapped from a file, read ten times per second."""

    def __init__(self) -> None:
        self.peak = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            self.peak = max(self.peak, float(status.partition("RssAnon:")[2].split()[0]) / 1e6)
            time.sleep(0.1)


@contextmanager
def stage(name: str, memory: Memory) -> Iterator[None]:
    memory.peak = 0.0
    start = time.process_time()
    yield
    time.sleep(0.2)  # so that the memory is seen
    print(f"| {name} | {time.process_time() - start:,.1f} s | {memory.peak:.2f} GB |", flush=True)


def apart(name: str, work: Callable[[Path], object], path: Path) -> None:
    """A stage in a process of its own, like another command, which finds everything in files."""
    process = multiprocessing.get_context("spawn").Process(target=_alone, args=(name, work, path))
    process.start()
    process.join()
    assert process.exitcode == 0, f"{name} has failed"


def _alone(name: str, work: Callable[[Path], object], path: Path) -> None:
    torch.set_num_threads(1)
    with stage(name, Memory()):
        work(path)


def resolved(path: Path) -> None:
    kept, arrays = RunFolder(path).read_kept()
    resolve(kept.candidates, arrays.confidence, arrays.second_opinion)


def timed_steps(run: Run, steps: int) -> tuple[float, float]:
    """CPU seconds of a step, and of its encoder passes alone."""
    settings, method = run.settings, run.method
    optimizer, rate = build_optimizer(method, settings.optim), learning_rate(settings.optim)
    method.train()
    whole, alone = [], []
    for step, batch in zip(range(steps), run.loader.epoch(0), strict=False):
        progress = Progress(0, settings.epochs, step, len(run.loader), settings.seed)
        start = time.process_time()
        engine.train_step(method, optimizer, rate(progress), batch, progress)
        middle = time.process_time()
        for view in batch.views:
            method.network.encode(view).sum().backward()  # type: ignore[no-untyped-call]
        whole.append(middle - start)
        alone.append(time.process_time() - middle)
    return min(whole), min(alone)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rehearsal", description=__doc__)
    parser.add_argument("--images", type=int, default=1_281_167)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=20)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    memory = Memory()
    labels = np.arange(asked.images) % asked.classes
    with tempfile.TemporaryDirectory() as place:
        print("| stage | CPU time | peak memory |\n|---|---:|---:|")
        images = repeated_images(Path(place) / "images", labels, asked.images)
        names = tuple(f"class {k}" for k in range(asked.classes))
        dataset = Dataset("rehearsal", names, images, (0.5,) * 3, (0.25,) * 3, labels=labels)
        config = RunConfig(data="rehearsal", batch_size=BATCH, epochs=1, threads=1, device="cpu")
        settings = settings_for(config, dataset)
        folder = RunFolder(Path(place) / "run")
        with stage("drawing the candidate sets", memory):
            sets = uniform(labels, asked.classes, (MEAN_SET - 1) / (asked.classes - 1), seed=0)
        with stage("hashing the data", memory):
            identity = identity_of(settings, dataset, sets)
        with stage("building the method, packed state and batches", memory):
            run = prepare(dataset, sets, settings, identity, network=TinyEncoder)
        with stage("writing the files of the run", memory):
            record = record_of(settings, identity, dataset, run.statistics, run.device)
            begin(folder, record, sets_of(dataset, sets))
        with stage(f"{asked.steps} steps of {BATCH} images", memory):
            step, encoder = timed_steps(run, asked.steps)
        print(f"| a step outside its encoder | {1e3 * (step - encoder):.1f} ms | – |")
        with stage("saving a checkpoint", memory):
            state = checkpoint.State(
                method=run.method.state_dict(), optimizer={}, epoch=0, step=1, rows=[], tally={}, seconds={}
            )
            checkpoint.save(folder.checkpoint_file, state, identity_hash(identity))
        print(f"| checkpoint | {folder.checkpoint_file.stat().st_size / 1e6:,.0f} MB | – |")
        with stage("computing the arrays at the end of the run", memory):
            row = EpochRow(epoch=0, loss=0.0, seconds=0.0)
            summary, trained = run.conclude([row], Pick("last", None), None, 0, 1.0)
            folder.write_rows([row])
            folder.write_arrays(trained.arrays)
            folder.write_summary(summary)
        del run, trained, sets, dataset, images, state
        for name, work in (("resolving labels from the files", resolved), ("report", report)):
            apart(name, work, folder.path)


if __name__ == "__main__":
    main()
