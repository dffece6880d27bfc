"""Runs the cells of a grid: each is a `papi train` process of its own, in a folder of its own.

joblib spreads them over this machine or over an existing Dask or Ray cluster, whose machines must see the same folders.
Whoever trains a cell holds a lock of its name, and the process that trains inherits it: a grid that is started again
while runs of a killed one go on waits for those.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Literal

import joblib  # type: ignore[import-untyped]

from papi.config import RunConfig
from papi.errors import UserError
from papi.experiments import cells
from papi.experiments.compute import work
from papi.setup.settings import complete

Backend = Literal["local", "dask", "ray"]
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_stopping = threading.Event()
_received: list[int] = []
_children: set[subprocess.Popen[str]] = set()


@dataclass(frozen=True)
class Cell:
    """A run that is to be trained."""

    key: str
    folder: Path
    arguments: tuple[str, ...]  # of `papi train`
    threads: int
    epochs: int
    work: int  # in encoder units

    @property
    def lock(self) -> Path:
        """Beside the folders of the runs, which are theirs alone."""
        return self.folder.parent / ".locks" / self.folder.name


@dataclass(frozen=True)
class Ended:
    """A cell whose process has ended: done, stopped on request, or failed."""

    cell: Cell
    error: str = ""
    stopped: bool = False


def make_cells(configs: Iterable[RunConfig], out: Path, threads: int) -> list[Cell]:
    """One cell for each different run."""
    found: dict[str, Cell] = {}
    for config in configs:
        key = cells.key(config)
        if key not in found:
            folder = out.resolve() / cells.folder_name(config)
            epochs = complete(config).epochs or 0
            found[key] = Cell(key, folder, tuple(cells.arguments(config)), threads, epochs, work(config))
    return list(found.values())


def train_cell(cell: Cell) -> Ended:
    """Train a cell here, which may be any machine of a cluster."""
    cell.lock.parent.mkdir(parents=True, exist_ok=True)
    with cell.lock.open("w") as lock:
        while not _locked(lock):
            if _stopping.wait(0.5):
                break
        if _stopping.is_set():
            return Ended(cell, stopped=True)
        os.utime(lock.fileno())  # tells others when it began
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "papi",
                "train",
                *cell.arguments,
                "--threads",
                str(cell.threads),
                "--out",
                cell.folder,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(cell.threads)},
            pass_fds=(lock.fileno(),),
            start_new_session=True,  # Ctrl-C reaches the grid alone, which tells its runs once
        ) as process:
            _children.add(process)
            if _stopping.is_set():  # the signal came while it started
                process.terminate()
            _, said = process.communicate()
            _children.discard(process)
    if process.returncode == 0:
        return Ended(cell)
    lines = said.strip().splitlines() or [f"it ended with code {process.returncode} and said nothing"]
    return Ended(cell, lines[-1], stopped=_stopping.is_set())


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def run(todo: list[Cell], *, jobs: int | None, backend: Backend, address: str | None) -> Iterator[Ended]:
    """Train cells and yield each as it ends. A failed cell does not stop the rest.

    On SIGTERM, SIGINT or SIGHUP local runs are told to save and stop; a cluster finishes the cells it has begun.
    """
    with _signals(backend), _backend(backend, address):
        how = "list" if backend == "ray" else "generator_unordered"  # Ray's backend tells all at the end
        parallel = joblib.Parallel(jobs or -1, batch_size=1, return_as=how)
        yield from parallel(joblib.delayed(train_cell)(cell) for cell in todo)


@contextmanager
def _signals(backend: Backend) -> Iterator[None]:
    def stop(number: int, _: FrameType | None) -> None:
        _received.append(number)
        if backend != "local":
            raise KeyboardInterrupt
        _stopping.set()
        for child in list(_children):
            child.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_signal() -> int | None:
    """The signal that asked the grid to stop, if one did."""
    return _received[0] if _received else None


@contextmanager
def _backend(backend: Backend, address: str | None) -> Iterator[None]:
    """Tells joblib where cells are trained."""
    if backend == "local":
        with joblib.parallel_config("threading"):  # a thread a job: it only waits for its process
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
        from distributed import Client  # type: ignore[import-not-found, import-untyped]
    except ImportError as error:
        raise UserError("--backend dask needs Dask: pip install 'papi-pll[dask]'.") from error
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
        import ray  # type: ignore[import-not-found]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found]
    except ImportError as error:
        raise UserError("--backend ray needs Ray: pip install 'papi-pll[ray]'.") from error
    try:
        ray.init(address=address or "auto")
    except ConnectionError as error:
        raise UserError(f"no Ray cluster answers ({error}): start one with `ray start --head`.") from error
    register_ray()
