"""One command in a process of its own, which is killed if it does not end, and what it has changed."""

import hashlib
import importlib
import os
import pkgutil
import resource
import signal
import stat
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

CRASHED = 70
MEMORY = 8 * 2**30  # bytes of address space: what asks for more is told that there is not enough
_LATE = ("PIL.Image", "matplotlib.pyplot", "onnxscript", "openpyxl", "pyarrow.parquet", "scipy.io", "torch.onnx")
_SKIPPED = ("papi.__main__", "papi.cli.tensorboard")


def load_everything() -> None:
    """Import what any command needs, once: processes are forked from this one, and no thread has started yet."""
    import papi

    for module in pkgutil.walk_packages(papi.__path__, "papi."):
        if module.name not in _SKIPPED:
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
    import torch
    from PIL import Image

    Image.init()
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
    torch.optim.Adam([torch.zeros(1)], lr=0.1)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # minus the signal if one ended it; None if it had to be killed
    said: str
    seconds: float

    @property
    def crashed(self) -> bool:
        """Whether it ended in a way that no user should see."""
        return self.code is not None and (
            self.code not in (0, 1, 2) or "Traceback (most recent call last)" in self.said
        )


def run(words: tuple[str, ...], folder: Path, outside: Path, output: Path, seconds: float) -> Ended:
    """`papi WORDS` in a folder. What it says goes to the file `output`."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(_obey(words, folder, outside, output))
    code = _wait(child, began + seconds)
    said = output.read_text(errors="replace") if output.exists() else ""
    return Ended(code, said, time.monotonic() - began)


def _wait(child: int, deadline: float) -> int | None:
    pause = 0.001
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(0.02, 1.5 * pause)


def _obey(words: tuple[str, ...], folder: Path, outside: Path, output: Path) -> int:
    import papi.cli

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ |= {"PAPI_CACHE": str(folder / "cache"), "HOME": str(outside / "home")}
    sys.path.append(str(outside))  # what a file names could be imported: it must not be
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["papi", *words]
    code = 0
    try:
        papi.cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        code = CRASHED
    sys.stdout.flush()
    sys.stderr.flush()
    return code


Seen = dict[str, tuple[int, int, str]]
"""By path: type and rights, size, and content or the target of a link."""


def look(folder: Path) -> Seen:
    """Everything below a folder, without following a link or opening a pipe."""
    seen: Seen = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            content = hashlib.blake2b(path.read_bytes()).hexdigest()
        else:
            content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        seen[str(path.relative_to(folder))] = (status.st_mode, size, content)
    return seen


def differences(before: Seen, after: Seen) -> list[str]:
    """The paths that were made, changed or removed."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
