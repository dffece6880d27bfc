"""Locks a run folder for one process at a time.

The lock is the operating system's lock (`flock`) on a file in the folder. It ends with its process, so a kill or a
reboot leaves nothing to clean up, and network file systems pass it on to their server. On file systems without locks,
the file itself is the lock, and it is stale once its owner, a process of this machine, has ended. In both cases the
file contains its owner: the process id on the first line, the host name on the second.
"""

import errno
import os
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout, lock_descriptor

from papi.errors import UserError
from papi.files.durable import open_regular, require_regular

NAME = "run.lock"
LARGEST = 4096  # maximum number of bytes read from a lock file
PATIENCE = 0.3  # seconds to wait, because `holder` briefly takes the lock to check whether it is free
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class InUseError(UserError):
    """Another process is training in the folder."""


class Owner(NamedTuple):
    """The process that a lock file names."""

    pid: int
    host: str
    since: str  # local time at which it took the lock


class Lock:
    """Held from its creation until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        self._lock: BaseFileLock
        require_regular(self.file)
        if _has_locks(folder):
            hint = ""
            self._lock = FileLock(self.file, thread_local=False, on_acquired=self._sign)
        else:
            hint = f" If you know that it has ended, delete {self.file}."
            # filelock takes over a stale file only on file systems that can swap two names.
            if self.file.exists() and _ended(self.file):
                self.file.unlink(missing_ok=True)
            self._lock = SoftFileLock(self.file, thread_local=False)
        try:
            self._lock.acquire(timeout=PATIENCE, poll_interval=0.02)
        except Timeout as error:
            raise InUseError(
                f"{folder} is in use by {describe(_read(self.file))}: wait until it ends, stop it, or choose another "
                f"folder with --out.{hint}"
            ) from error
        self._taken = self.file.stat()

    def _sign(self, descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n{socket.gethostname()}\n".encode(), 0)
        except OSError:  # a full disk: leave nothing behind
            self.file.unlink()
            raise

    def is_mine(self) -> bool:
        """Whether the file is still the one that was locked; not if the folder was deleted or recreated."""
        try:
            return os.path.samestat(self._taken, self.file.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Release the folder for other processes."""
        if self.is_mine():
            with suppress(OSError):  # in a folder that is now read-only, the file stays but locks nothing
                self.file.unlink()
        self._lock.release()


def holder(folder: Path) -> tuple[Owner | None, bool]:
    """The owner that the lock file names, or None, and whether the lock is held now. Changes nothing."""
    file = folder / NAME
    owner = _read(file)
    try:
        stream = _open(file)
    except (OSError, UserError):
        return None, False
    import fcntl  # not on Windows, where models are used but not trained

    with stream:
        try:
            # filelock has no shared locks; with exclusive ones, two observers would mistake each other for the owner.
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return owner, True
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            return owner, not _ended(file)
    return owner, False


def describe(owner: Owner | None) -> str:
    """`process 123 on host since 2024-01-01 12:00:00`."""
    return f"process {owner.pid} on {owner.host} since {owner.since}" if owner else "another process"


def _has_locks(folder: Path) -> bool:
    """Whether the system can lock files in the folder, tested with an unnamed file."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        try:
            return lock_descriptor(probe.fileno(), blocking=False)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return False
            raise


def _ended(file: Path) -> bool:
    """Whether the owner in a lock file has certainly ended: a process of this machine that no longer runs.

    filelock checks this only when it takes over a stale lock, so it is given a copy to take over.
    """
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, NAME)
        try:
            with _open(file) as stream:
                copy.write_bytes(stream.read(LARGEST))
        except FileNotFoundError:
            return True
        try:
            with SoftFileLock(copy, blocking=False):
                return True
        except Timeout:
            return False


def _open(file: Path) -> BinaryIO:
    return os.fdopen(open_regular(file, os.O_RDONLY), "rb")


def _read(file: Path) -> Owner | None:
    """The owner in a lock file; None while the file is being written, or if it is damaged."""
    try:
        with _open(file) as stream:
            pid, host, *_ = stream.read(LARGEST).decode().splitlines()
            since = time.localtime(os.fstat(stream.fileno()).st_mtime)
        # In a container, filelock appends `?` and the id of the PID namespace to the host name.
        return Owner(int(pid), host.partition("?")[0], time.strftime("%Y-%m-%d %H:%M:%S", since))
    except (OSError, ValueError):  # a UserError is a ValueError
        return None
