"""The one way out: every file the package writes takes its place here, whole or not at all.

A file is written under a temporary name beside its place, flushed to disk and renamed. It replaces a regular file or
nothing. Links are not followed, and devices, pipes and folders are not replaced, so a folder from a stranger cannot
send a write somewhere else.
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
    """A stream whose content becomes `file` when all of it is on disk; what was `file` before may be kept as `keep`.

    A reader, a kill or a power cut finds the old file or the whole new one. After an error nothing half-written stays,
    because on a full disk it would take the room that is needed.
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
    """Where to write the output of a command; it takes its place when everything has gone well.

    The path has the suffix of `file`. `require_output` describes the other parameters and what is refused.
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
    """Refuse a place where a command must not write. Nothing is changed.

    `inputs` are files that the command reads; its output must not replace one of them. `within` is the folder of an
    output that nobody has named: no folder between the two may be a link. A person may name a device or a pipe, which
    is written to, unless the output cannot be a stream (`pipes`).
    """
    if within is not None:
        require_inside(file.parent, within)
    with _explained(file):
        if not (pipes and within is None and _is_stream(file)):
            require_regular(file)
    for each in inputs:
        if file.is_file() and _is_same(file, each):
            raise UserError(f"{file} is read by this command: choose another file to write.")


def _is_same(file: Path, other: Path) -> bool:
    try:
        return os.path.samefile(file, other)
    except (OSError, ValueError):  # one does not exist, or its name is impossible
        return False


def require_inside(folder: Path, within: Path) -> None:
    """Refuse a folder that a link would lead out of the one it belongs to."""
    for each in (folder, *folder.parents):
        if each == within:
            return
        if each.is_symlink():
            raise UserError(f"{each} is a link: remove it, or name the file to write with --out.")


def require_regular(file: Path) -> None:
    """Refuse what is there unless it is a regular file or nothing."""
    try:
        mode = file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise UserError(f"{file} is a link: name the file it leads to, or remove the link.")
    if stat.S_ISDIR(mode):
        raise UserError(f"{file} is a folder: name the file to write in it, or remove the folder.")
    if not stat.S_ISREG(mode):
        raise UserError(f"{file} is a device or a pipe, and a file has to be written: name another place.")


def open_regular(file: Path, flags: int) -> int:
    """The descriptor of a regular file. No link is followed, and no pipe is waited for."""
    require_regular(file)
    return os.open(file, flags | _SAFE, 0o666)


def append(file: Path, content: bytes) -> None:
    """Add to the end of a file, on disk when this returns."""
    with os.fdopen(open_regular(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk: without it a power cut can undo a rename."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _beside(file: Path, suffix: str = "") -> Iterator[tuple[int, Path]]:
    """A new file of this process alone beside `file`: its descriptor and its path. After an error it is removed."""
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
    """Make the file and lock it, which tells others that its writer lives."""
    while True:
        half = file.with_name(f".{_stem(file)}.{uuid.uuid4().hex[:12]}.writing{suffix}")
        descriptor = os.open(half, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
        if _locked(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return descriptor, half
        os.close(descriptor)  # another process took it for a leftover before it was locked


def _stem(file: Path) -> str:
    return file.name[:40]  # names have a limit of 255 bytes, and the temporary one is longer


def _remove_leftovers(file: Path, suffix: str) -> None:
    """Remove what killed processes have left of the same file. One that still writes holds a lock."""
    pattern = re.compile(re.escape(f".{_stem(file)}.") + r"[0-9a-f]{12}\.writing" + re.escape(suffix))
    with suppress(OSError), os.scandir(file.parent) as entries:
        for half in [Path(each.path) for each in entries if pattern.fullmatch(each.name)]:
            with suppress(OSError, UserError):  # another's file, or a link: it stays
                descriptor = open_regular(half, os.O_RDWR)
                try:
                    if _locked(descriptor):
                        half.unlink()
                finally:
                    os.close(descriptor)


def _locked(descriptor: int) -> bool | None:
    """Whether this process now has the lock of a file; None where the disk has no locks."""
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
    require_regular(target)  # again: it may have appeared while the content was made
    os.replace(source, target)


def _flush(file: Path) -> None:
    descriptor = open_regular(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_stream(file: Path) -> bool:
    """Whether a person has named a pipe, a terminal or the like, also by a name of the system such as /dev/stdout."""
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
    """Make a folder and those above it. After an error the new ones are removed again."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):  # it could not be made, or another process has put a file there
                each.rmdir()
        raise


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}). Choose another with --out.") from error
