"""Files that are whole at every moment: written beside, flushed to disk, renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from papi.errors import UserError


@contextmanager
def replacing(file: Path, keep: Path | None = None) -> Iterator[BinaryIO]:
    """A stream whose content becomes `file` when all of it is on disk; what was `file` before may be kept as `keep`.

    A reader, a kill or a power cut finds the old file or the whole new one. After an error nothing half-written stays,
    because on a full disk it would take the room that is needed.
    """
    beside = file.with_name(f".{file.name}.writing")
    try:
        with beside.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if keep is not None and file.exists():
            os.replace(file, keep)
        os.replace(beside, file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


@contextmanager
def output_file(file: Path) -> Iterator[Path]:
    """Where to write the file that a person has named with --out; it takes its place when all has gone well.

    What cannot be written is refused before any work is done for it.
    """
    if file.is_dir():
        raise UserError(f"{file} is a folder: name the file to write in it with --out.")
    if file.exists() and not file.is_file():  # a device or a pipe must not be replaced
        with _explained(file):
            yield file
        return
    file = file.resolve()  # what a link leads to is written, not the link
    half = file.with_name(f".writing.{file.name}")  # the suffix stays: some readers want it
    with _explained(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        half.touch()
    try:
        with _explained(file):
            yield half
            os.replace(half, file)
    finally:
        half.unlink(missing_ok=True)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}). Choose another with --out.") from error


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk: without it a power cut can undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
