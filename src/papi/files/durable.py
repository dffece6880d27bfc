"""Atomic writes: every file that the package writes is complete or does not exist.

A file is written under a temporary name in the same folder, flushed to disk and renamed. It replaces only a regular
file. Links are not followed, and devices, pipes and folders are not replaced, so an untrusted folder cannot redirect a
write.
"""

import os
import re
import stat
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from papi.errors import UserError

_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # Windows lacks some


@contextmanager
def replacing(file: Path, keep: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces `file` once it is on disk; the old file can be kept as `keep`.

    A reader, a kill or a power cut finds the old file or the complete new one. After an error the incomplete file is
    removed, because it would take up space on a full disk.
    """
    require_regular(file)
    with _beside(file) as (descriptor, half):
        with os.fdopen(descriptor, "wb", closefd=False) as stream:
            yield stream
            stream.flush()
            os.fsync(descriptor)
        if keep is not None and file.exists():
            _rename(file, keep)
        _rename(half, file)
    sync_folder(file.parent)


@contextmanager
def output_file(
    file: Path, *, inputs: Iterable[Path] = (), within: Path | None = None, pipes: bool = True
) -> Iterator[Path]:
    """Yield a temporary path for the output of a command, which is renamed to `file` on success.

    The path has the suffix of `file`. `require_output` describes the other parameters and what is rejected.
    """
    require_output(file, inputs=inputs, within=within, pipes=pipes)
    if pipes and within is None and _is_stream(file):
        with _explained(file):
            yield file
        return
    with _explained(file):
        with _folder(file.parent), _beside(file, file.suffix[:16]) as (_, half):
            yield half
            _flush(half)
            _rename(half, file)
        sync_folder(file.parent)


def require_output(file: Path, *, inputs: Iterable[Path] = (), within: Path | None = None, pipes: bool = True) -> None:
    """Raise `UserError` if a command must not write to a place. Nothing is changed.

    `inputs` are files that the command reads; its output must not replace any of them. `within` is the folder of a
    default output: no folder between the two may be a link. The user may name a device or a pipe to write to, unless
    the output cannot be a stream (`pipes`).
    """
    if within is not None:
        require_inside(file.parent, within)
    with _explained(file):
        if not (pipes and within is None and _is_stream(file)):
            require_regular(file)
    for each in inputs:
        if file.is_file() and _is_same(file, each):
            raise UserError(f"{file} is an input of this command: choose another output file.")


def _is_same(file: Path, other: Path) -> bool:
    try:
        return os.path.samefile(file, other)
    except (OSError, ValueError):  # one does not exist, or its name is impossible
        return False


def require_inside(folder: Path, within: Path) -> None:
    """Raise `UserError` if a folder is reached through a link."""
    for each in (folder, *folder.parents):
        if each == within:
            return
        if each.is_symlink():
            raise UserError(f"{each} is a link: remove it, or choose the output with --out.")


def require_regular(file: Path) -> None:
    """Raise `UserError` unless the path is a regular file or does not exist."""
    try:
        mode = file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise UserError(f"{file} is a link: specify its target, or remove the link.")
    if stat.S_ISDIR(mode):
        raise UserError(f"{file} is a folder: specify a file in it, or remove the folder.")
    if not stat.S_ISREG(mode):
        raise UserError(f"{file} is a device or a pipe, but the output must be a file: choose another path.")


def open_regular(file: Path, flags: int) -> int:
    """Open a regular file and return its descriptor, without following links or blocking on pipes."""
    require_regular(file)
    return os.open(file, flags | _SAFE, 0o666)


def append(file: Path, content: bytes) -> None:
    """Append to a file; the content is on disk when this returns."""
    with os.fdopen(open_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk; otherwise a power cut can undo a rename."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _beside(file: Path, suffix: str = "") -> Iterator[tuple[int, Path]]:
    """A new temporary file in the folder of `file`: its descriptor and path. After an error it is removed."""
    _remove_leftovers(file, suffix)
    descriptor, half = _create(file, suffix)
    try:
        yield descriptor, half
    except BaseException:
        with suppress(OSError):  # it was renamed, or its folder is gone
            half.unlink()
        raise
    finally:
        os.close(descriptor)


def _create(file: Path, suffix: str) -> tuple[int, Path]:
    """Create the file and lock it, so that other processes know that its writer is running."""
    while True:
        half = file.with_name(f".{_stem(file)}.{uuid.uuid4().hex[:12]}.writing{suffix}")
        descriptor = os.open(half, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
        if _locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return descriptor, half
        os.close(descriptor)  # another process removed it as a leftover before it was locked


def _stem(file: Path) -> str:
    return file.name[:40]  # names have a limit of 255 bytes, and the temporary one is longer


def _remove_leftovers(file: Path, suffix: str) -> None:
    """Remove temporary files of `file` that killed processes left. A process that still writes holds a lock."""
    pattern = re.compile(re.escape(f".{_stem(file)}.") + r"[0-9a-f]{12}\.writing" + re.escape(suffix))
    with suppress(OSError), os.scandir(file.parent) as entries:
        for half in [Path(each.path) for each in entries if pattern.fullmatch(each.name)]:
            with suppress(OSError, UserError):  # a file of another user, or a link, stays
                descriptor = open_regular(half, os.O_RDWR)
                try:
                    if _locked(descriptor):
                        half.unlink()
                finally:
                    os.close(descriptor)


def _locked(descriptor: int) -> bool | None:
    """Whether this process now has the lock of a file; None if the file system has no locks."""
    if sys.platform == "win32":  # a lock there would stop this process itself from opening the file again
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _rename(source: Path, target: Path) -> None:
    require_regular(target)  # again: it may have appeared since the first check
    os.replace(source, target)


def _flush(file: Path) -> None:
    descriptor = open_regular(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_stream(file: Path) -> bool:
    """Whether the user has named a pipe, a terminal or the like, also by a system path such as /dev/stdout."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return False
    if file.is_symlink():
        place = file.parent.resolve()
        return not stat.S_ISDIR(mode) and (place == Path("/dev") or place.parts[1:2] == ("proc",))
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Create a folder and its parents. After an error, the new ones are removed."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):  # it could not be created, or another process has put a file there
                each.rmdir()
        raise


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}): choose another path with --out.") from error
