"""Reads untrusted files: only regular files, and only up to a size limit.

A pipe or a device may block or never end. A link in a folder from somebody else may point to any file of the user. A
file that cannot be opened raises `OSError`, and invalid content raises `ValueError`. Both contain only the reason: the
caller adds the name of the file and the remedy.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import BinaryIO

JSON_BYTES = 64 * 2**20
ROWS_BYTES = 64 * 2**20
JSON_DEPTH = 32
NUMBER_DIGITS = 25  # of a whole number: 64 bits need 20
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def memory_bytes() -> int:
    """The memory of this machine: no file with arrays or weights that is larger can be used."""
    if not hasattr(os, "sysconf"):  # Windows does not tell
        return 2**40
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def plain_file(file: Path, most: int, inside: Path | None = None) -> Path:
    """The path of a plain file of at most so many bytes, without links. Nothing is opened.

    A person may name a link. A file that comes with a folder must lie `inside` that folder, wherever links lead.
    """
    real = Path(os.path.realpath(file, strict=True))
    if inside is not None and not real.is_relative_to(os.path.realpath(inside)):
        raise OSError(errno.ELOOP, "it is a link that leads out of its folder", str(file))
    _require_plain(os.stat(real), file, most)
    return real


@contextmanager
def opened(file: Path, most: int, inside: Path | None = None) -> Iterator[BinaryIO]:
    """A stream of the bytes of such a file."""
    with open(plain_file(file, most, inside), "rb", opener=_open_at_once) as stream:
        _require_plain(os.fstat(stream.fileno()), file, most)  # it may have been exchanged since
        yield stream


def read_bytes(file: Path, most: int, inside: Path | None = None) -> bytes:
    """All bytes of such a file."""
    with opened(file, most, inside) as stream:
        return stream.read(os.fstat(stream.fileno()).st_size)  # memory for as many is taken before the first is read


def read_json(file: Path, inside: Path | None = None) -> object:
    """The value in a JSON file."""
    return parse_json(read_bytes(file, JSON_BYTES, inside).decode("utf-8"))


def parse_json(text: str) -> object:
    """The value of a JSON text that is not nested deeply, with numbers and texts that every part of a program takes.

    `NaN` and `Infinity` are numbers here: a diverged run has them in its rows.
    """
    try:
        found: object = json.loads(text, parse_int=_whole_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    level = [found]
    for _ in range(JSON_DEPTH):
        level = [inner for each in level for inner in _parts(each)]
        if not level:
            return found
    raise ValueError("it is nested too deeply")


def is_unicode(text: str) -> bool:
    """Whether a text can be written into a file. What stands for the bytes of a file's name cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def reason(error: Exception) -> str:
    """What went wrong, on one line. A file decides what its values are, so a text with one may be of any length."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return shorten(said, 300, placeholder=" …") or type(error).__name__


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write into a pipe, and never through a link."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


def _require_plain(found: os.stat_result, file: Path, most: int) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(file))
    if kind != stat.S_IFREG:
        raise OSError(errno.ENOTSUP, f"it is {_KINDS.get(kind, 'something else')} and not a file", str(file))
    if found.st_size > most:
        size = f"it has {found.st_size / 1e6:,.0f} MB, and at most {most / 1e6:,.0f} MB are read"
        raise OSError(errno.EFBIG, size, str(file))


def _whole_number(digits: str) -> int:
    if len(digits) > NUMBER_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _parts(value: object) -> list[object]:
    """What lies directly in a value of JSON. Texts end here: they must be such that they can be written and printed."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, str) and ("\0" in value or not _is_text(value)):
        raise ValueError(f"the text {shorten(ascii(value), 60)} has characters that cannot be written")
    return value if isinstance(value, list) else []


def _is_text(value: str) -> bool:
    """Whether it is a text, or the name of a file: Python has surrogates for bytes of names that are not UTF-8.

    JSON can name any surrogate, also one that stands for nothing.
    """
    try:
        return value.isascii() or bool(value.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        return False
