"""Runs the cells of a grid, each as a separate `papi train` process in its own folder.

joblib runs them on this machine or on an existing Dask or Ray cluster, whose machines must share the folders. Each cell
has a lock that its training process inherits. If a grid was killed but its runs continue, a new grid waits for them.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

import joblib
from filelock import lock_descriptor

from papi.config import RunConfig
from papi.errors import UserError
from papi.experiments import cells
from papi.experiments.compute import work
from papi.files.durable import open_regular, require_inside

Backend = Literal["local", "dask", "ray"]


@dataclass(frozen=True)
class Cell:
    """A run to train."""

    key: str
    data: str  # the name of a dataset, or a path
    folder: Path
    arguments: tuple[str, ...]  # of `papi train`
    threads: int
    epochs: int
    work: int  # in encoder units

    @property
    def lock(self) -> Path:
        """The lock file, which is next to the run folders, not inside them."""
        return self.folder.parent / ".locks" / self.folder.name


@dataclass(frozen=True)
class Ended:
    """A cell whose process has ended: finished, stopped on request, or failed."""

    cell: Cell
    error: str = ""
    stopped: bool = False


def make_cells(configs: Iterable[RunConfig], out: Path, threads: int) -> list[Cell]:
    """Make one cell for each distinct run."""
    found: dict[str, Cell] = {}
    for config in configs:
        key = cells.key(config)
        if key not in found:
            folder = out.resolve() / cells.folder_name(config)
            epochs = cells.settings_of(config).epochs
            found[key] = Cell(key, config.data, folder, tuple(cells.arguments(config)), threads, epochs, work(config))
    return list(found.values())


class Processes:
    """The training processes on this machine. After `stop`, they save and end, and no new ones are started."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._running: set[subprocess.Popen[str]] = set()

    def stop(self) -> None:
        """Ask all processes to save and stop. A second call stops them at once."""
        self._stopping.set()
        for process in list(self._running):
            process.terminate()

    def train(self, cell: Cell) -> Ended:
        """Train a cell once no other process is training it."""
        require_inside(cell.lock.parent, cell.folder.parent)
        cell.lock.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_regular(cell.lock, os.O_WRONLY | os.O_CREAT), "w") as lock:
            while not lock_descriptor(lock.fileno(), blocking=False):
                if self._stopping.wait(0.5):
                    break
            if self._stopping.is_set():
                return Ended(cell, stopped=True)
            os.utime(lock.fileno())  # the modification time shows when training began
            code, said = self._run(cell, lock.fileno())
        if code == 0:
            return Ended(cell)
        lines = said.strip().splitlines() or [f"it ended with code {code} without a message"]
        return Ended(cell, lines[-1], stopped=self._stopping.is_set())

    def _run(self, cell: Cell, lock: int) -> tuple[int, str]:
        """Run the process of a cell. Returns its exit code and what it wrote to stderr."""
        # A cell uses only its own options, not an options file in this folder.
        options = ["--threads", str(cell.threads), "--out", str(cell.folder), "--options-file", "none"]
        with subprocess.Popen(  # our own program, without a shell  # nosec B603
            [sys.executable, "-m", "papi", "train", *cell.arguments, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(cell.threads)},
            pass_fds=(lock,),
            start_new_session=True,  # Ctrl-C reaches only the grid, which then stops its runs once
        ) as process:
            self._running.add(process)
            if self._stopping.is_set():  # the signal came while the process started
                process.terminate()
            _, said = process.communicate()
            self._running.discard(process)
        return process.returncode, said


def train_cell(cell: Cell) -> Ended:
    """Train a cell on a machine of a cluster, where it always runs to the end."""
    return Processes().train(cell)


class Grid:
    """Trains cells here or on a cluster. SIGTERM, SIGINT and SIGHUP stop it; `stopped_by` is the first signal."""

    def __init__(self, *, jobs: int | None = None, backend: Backend = "local", address: str | None = None) -> None:
        self.jobs = jobs
        self.backend = backend
        self.address = address
        self.stopped_by: int | None = None
        self._processes = Processes()

    def run(self, todo: Sequence[Cell]) -> Iterator[Ended]:
        """Train cells and yield each as it ends. A failed cell does not stop the rest.

        A signal makes local runs save and stop. On a cluster it raises KeyboardInterrupt, and the cluster finishes
        the cells that it has started.
        """
        train = self._processes.train if self.backend == "local" else train_cell
        with self._listening(), _backend(self.backend, self.address):
            how = "list" if self.backend == "ray" else "generator_unordered"  # Ray returns all results at the end
            parallel = joblib.Parallel(self.jobs or -1, batch_size=1, return_as=how)
            yield from parallel(joblib.delayed(train)(cell) for cell in todo)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Handle the signals, and restore the previous handlers at the end."""
        signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, self._stop) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.stopped_by is None:
            self.stopped_by = number
        if self.backend != "local":
            raise KeyboardInterrupt
        self._processes.stop()


@contextmanager
def _backend(backend: Backend, address: str | None) -> Iterator[None]:
    """Configure where joblib trains cells."""
    if backend == "local":
        with joblib.parallel_config("threading"):  # one thread per job, which only waits for its process
            yield
    elif backend == "dask":
        with _dask(address), joblib.parallel_config("dask"):
            yield
    else:
        _ray(address)
        with joblib.parallel_config("ray"):
            yield


@contextmanager
def _dask(address: str | None) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise UserError("--backend dask needs Dask: run pip install 'papi-pll[dask]'.") from error
    if address is None:
        raise UserError("--backend dask needs the address of a scheduler: --address tcp://HOST:8786.")
    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler`."
        ) from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise UserError(f"the Dask scheduler at {address} has no workers: start one with `dask worker {address}`.")
        yield


def _ray(address: str | None) -> None:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise UserError("--backend ray needs Ray: run pip install 'papi-pll[ray]'.") from error
    try:
        ray.init(address=address or "auto")
    except ConnectionError as error:
        raise UserError(f"no Ray cluster answers ({error}): start one with `ray start --head`.") from error
    register_ray()
