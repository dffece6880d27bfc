"""Real `papi` processes that start in a tenth of a second: one process loads torch once and forks for each command.

Run as a program it is that process: it takes orders as lines of JSON and forks before any thread of torch has started.
In a fork, faults can be put in that no test can cause from outside at the right moment: a limit on the size of files
when a certain file is about to be written, a kill at a certain call of the system, a clock that goes back, no rights of
an administrator. They are real limits and real kills; nothing of PaPi is replaced.
"""

import atexit
import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Preloaded:
    """The process that forks, seen from the tests."""

    def __init__(self) -> None:
        modules = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))  # of the tests
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": modules}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.order(ready=True)

    def start(self, *arguments: object, output: Path, **faults: Any) -> "Child":
        """`papi ARGUMENTS` in a process of its own; what it says goes to the file `output`."""
        output.write_text("")
        environment = {"PAPI_CACHE": os.environ.get("PAPI_CACHE", str(output.parent / "cache"))}
        order = {"arguments": [*map(str, arguments)], "output": str(output), "faults": faults, "env": environment}
        return Child(self, self.order(start=order), output)

    def run(self, *arguments: object, output: Path, **faults: Any) -> "Child":
        """As `start`, until it ends."""
        child = self.start(*arguments, output=output, **faults)
        child.wait()
        return child

    def order(self, **what: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@dataclass
class Child:
    """One command. Its number belongs to nobody else before `wait` has returned."""

    parent: Preloaded
    pid: int
    output: Path
    code: int | None = None

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """The exit code; minus the signal if one ended the process."""
        if self.code is None:
            self.code = self.parent.order(wait=self.pid)
        return self.code

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def said_in_one_line(self) -> str:
        """As the terminal was narrow, or not."""
        return " ".join(self.said.split())


@contextlib.contextmanager
def preloaded() -> Iterator[Preloaded]:
    process = Preloaded()
    try:
        yield process
    finally:
        process.close()


def serve() -> None:
    """Fork for each order until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        order = json.loads(line)
        if "ready" in order:
            answer = 0
        elif "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                os._exit(_obey(**order["start"]))
        answers.write(f"{answer}\n")
        answers.flush()


def _load() -> None:
    """Everything a training imports, so that forks have it. An optimizer imports half of torch when it is made."""
    import torch

    for module in (
        "papi.training.annotator",
        "papi.runs.doctor",
        "papi.cli",
        "papi.cli.train_progress",
        "papi.train",
        "scipy.io",
        "torch.utils.serialization",
    ):
        importlib.import_module(module)
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
    torch.optim.Adam([torch.zeros(1)], lr=0.1)


def _obey(arguments: list[str], output: str, faults: dict[str, Any], env: dict[str, str]) -> int:
    import papi.cli

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["papi", *arguments]
    for fault, value in faults.items():
        FAULTS[fault](value)
    code = 0
    try:
        papi.cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    threading._shutdown()  # first, as in any interpreter: worker processes are told to end here, and joined below
    atexit._run_exitfuncs()
    return code


def _limit_file_size(when: dict[str, Any]) -> None:
    """No file may grow beyond `bytes` while the file named is written for the `time`-th time.

    With `kill` the system ends the process in the middle of that write, as it does by default.
    """
    from papi.runs.folder import RunFolder

    untouched, seen = RunFolder.writing, 0
    if when.get("kill"):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    @contextlib.contextmanager
    def writing(self: RunFolder, file: Path) -> Iterator[None]:
        nonlocal seen
        seen += file.name == when["file"]
        now = seen == when.get("time", 1) and file.name == when["file"]
        try:
            with untouched(self, file):
                _limit_from_the_start(when["bytes"] if now else resource.RLIM_INFINITY)
                yield
        finally:
            _limit_from_the_start(resource.RLIM_INFINITY)  # what is said about it also goes to a file

    RunFolder.writing = writing  # type: ignore[method-assign]


def _limit_from_the_start(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _kill_at(call: int) -> None:
    """End with SIGKILL before the `call`-th time that something is brought to disk, renamed or removed."""
    calls = 0

    def counted(untouched: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return untouched(*arguments, **options)

        return instead

    os.fsync, os.replace, os.unlink = counted(os.fsync), counted(os.replace), counted(os.unlink)


def _clock_goes_back(seconds: float) -> None:
    """Every look at the clock on the wall shows an earlier time than the one before."""
    now = time.time()

    def earlier() -> float:
        nonlocal now
        now -= seconds
        return now

    time.time = earlier


def _drop_rights(_: bool) -> None:
    """Root may write where it is forbidden; without its capabilities it may not."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        nothing = (ctypes.c_uint32 * 6)()
        if ctypes.CDLL(None, use_errno=True).capset(header, nothing) != 0:
            raise OSError(ctypes.get_errno(), "capset")


def _set_threads(count: int) -> None:
    """What a machine with more cores would begin with."""
    import torch

    torch.set_num_threads(count)


FAULTS: dict[str, Callable[[Any], None]] = {
    "limit": _limit_file_size,
    "file_size": _limit_from_the_start,
    "kill_at": _kill_at,
    "clock_back": _clock_goes_back,
    "no_rights": _drop_rights,
    "folder": os.chdir,
    "threads": _set_threads,
}

if __name__ == "__main__":
    _load()
    serve()
