"""One run, one owner: a file in the run folder that one process at a time can hold.

Two means work together. The system's lock on the file (`flock`) is what counts: it ends with its process, however that
ends, so a kill, a reboot or a process number used again leaves nothing to clean up; network disks pass it on to their
server. Beside it the owner is written into the file, for people to read, and for disks that know no such locks: there
the lock is the existence of the file, and it is stale when its owner is a process of this machine that has ended.
"""

import errno
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from papi.errors import UserError

try:
    import fcntl
except ImportError:  # a system without flock is treated like a disk without it
    fcntl = None  # type: ignore[assignment]

NAME = "run.lock"
PATIENCE = 0.3  # seconds: `papi doctor` looks at a lock by taking it for a moment
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}

Owner = dict[str, Any]


class InUseError(UserError):
    """Another process is training in the folder."""


class Lock:
    """Held from its creation until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        self._descriptor = _take(self.file)
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, (json.dumps(_myself()) + "\n").encode(), 0)
        except OSError:
            self.release()
            raise

    def is_mine(self) -> bool:
        """Whether the file is still the one that was locked: not if the folder was deleted, or made anew by others."""
        return _is_at(self._descriptor, self.file)

    def release(self) -> None:
        if self.is_mine():
            with suppress(OSError):  # a folder that has become read-only keeps the file, which then locks nobody out
                self.file.unlink()
        os.close(self._descriptor)


def holder(folder: Path) -> tuple[Owner | None, bool]:
    """Who is written in the lock, or None, and whether it is held now. Nothing is changed."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY)
    except OSError:
        return None, False
    try:
        owner = _read(descriptor)
        granted = _flock(descriptor, shared=True)
        return owner, not _ended(owner) if granted is None else not granted
    finally:
        os.close(descriptor)


def describe(owner: Owner | None) -> str:
    """`process 123 on host since 2024-01-01 12:00:00`."""
    if not owner:
        return "another process"
    return f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('since')}"


def _take(file: Path) -> int:
    """An open descriptor of the locked file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        descriptor, made = _open(file)
        owner = None if made else _read(descriptor)
        granted = _flock(descriptor)
        hint = ""
        if granted is None:  # no such locks on this disk: whoever makes the file has it
            granted = made
            hint = f" If you know that it has ended, delete {file}."
            if _ended(owner):
                file.unlink(missing_ok=True)
        # Its last owner may have removed the file while it was being opened: then it locks nobody out.
        if granted and _is_at(descriptor, file):
            return descriptor
        os.close(descriptor)
        if not granted and time.monotonic() > deadline:
            raise InUseError(
                f"{file.parent} is in use by {describe(owner)}. Wait until it ends, stop it, "
                f"or choose another folder with --out.{hint}"
            )
        time.sleep(0.02)


def _open(file: Path) -> tuple[int, bool]:
    """A descriptor of the file, and whether this made it."""
    while True:
        try:
            return os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), True
        except FileExistsError:
            with suppress(FileNotFoundError):  # released in between
                return os.open(file, os.O_RDWR), False


def _is_at(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except OSError:
        return False


def _flock(descriptor: int, shared: bool = False) -> bool | None:
    """Whether the lock was granted; None where there are no such locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _read(descriptor: int) -> Owner | None:
    """Who is written in the file; None while that is being written, or if it is damaged."""
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return None
    return owner if isinstance(owner, dict) else None


def _myself() -> Owner:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "boot": _boot(),
        "started": _started(os.getpid()),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def _ended(owner: Owner | None) -> bool:
    """Whether an owner is surely gone: of this machine, and of an earlier boot or no longer running.

    A process number that is in use again is recognised by the time at which its process started.
    """
    if not owner or owner.get("host") != socket.gethostname() or not isinstance(owner.get("pid"), int):
        return False
    if owner.get("boot") != _boot():
        return True
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it lives, as another user's
        pass
    return owner.get("started") != _started(owner["pid"])


def _boot() -> str | None:
    """A name for this boot of this machine; None where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the boot; None where the system does not tell."""
    try:
        # The second field is the program's name in brackets, which may hold anything; the 22nd is the start.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
