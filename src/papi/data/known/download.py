"""Downloads published files. A file gets its final name only when it is complete and verified."""

import hashlib
import http.client
import os
import shutil
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from papi.data.known.published import Remote
from papi.errors import UserError
from papi.files.durable import open_regular, require_regular
from papi.files.reading import opened

LARGEST = 2**30  # bytes of one file: five times the largest published file
_TIMEOUT = 30  # seconds without data
_BLOCK = 1 << 18


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https addresses, but never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme != "https" and (scheme != "http" or req.type == "https"):
            fp.close()
            raise UserError(f"{req.full_url} redirects to {newurl}, which is not secure: download the file yourself.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(remote: Remote, data_dir: Path, progress: Callable[[int, int], None]) -> Path:
    """Download a file unless it exists, verify it, and unpack it if it is an archive.

    `progress` receives the bytes done and the total. An interrupted download leaves a `.part` file that the next call
    resumes.
    """
    target = data_dir / remote.target
    unpacked = None if remote.unpacks_to is None else data_dir / remote.unpacks_to
    if unpacked is not None and unpacked.exists():
        return unpacked
    try:
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            _download(remote, part, target, progress)
            _verify(part, remote, "the server sent a different file, which was removed; try again later")
            os.replace(part, target)
        elif remote.unpacks_to is not None:
            _verify(target, remote, "the download was incomplete and was removed; download it again")
        return target if unpacked is None else unpack(target, unpacked)
    except OSError as error:
        raise UserError(f"{error.filename or data_dir} cannot be written: {error.strerror or error}.") from error


def _download(remote: Remote, part: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Fill the partial file: from its end if the server supports that, otherwise from the start."""
    require_regular(part)  # a link could redirect the write to another file
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={start}-"} if start else {})
    instead = f"download it yourself and save it as {target}"
    try:
        with urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT) as answer:
            resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            start = start if resumed else 0
            length = answer.headers.get("Content-Length", "")
            total = start + int(length) if length.isdecimal() and len(length) < 20 else 0  # 0: unknown
            flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if resumed else os.O_TRUNC)
            with os.fdopen(open_regular(part, flags), "wb") as file:
                _copy(answer, file.write, start, total, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing left to send: the part is complete or too long
            return
        raise UserError(f"{remote.url} cannot be downloaded (HTTP {error.code} {error.reason}): {instead}.") from error
    except UserError:
        raise
    # A redirect to an invalid address raises ValueError.
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{remote.url} cannot be downloaded ({reason}): try again, or {instead}.") from error
    except _TooLargeError as error:
        part.unlink(missing_ok=True)
        raise UserError(
            f"{remote.url} sends more than {LARGEST:,} bytes, so it is not the published file: {instead}."
        ) from error
    if total and part.stat().st_size < total:
        raise UserError(
            f"the download of {remote.url} stopped after {part.stat().st_size:,} of {total:,} bytes: run the same "
            "command to continue."
        )


class _TooLargeError(Exception):
    """The server sends more data than any published file has."""


def _copy(
    answer: http.client.HTTPResponse,
    write: Callable[[bytes], int],
    done: int,
    total: int,
    progress: Callable[[int, int], None],
) -> None:
    progress(done, total)
    while block := answer.read(_BLOCK):
        done += len(block)
        if max(done, total) > LARGEST:
            raise _TooLargeError
        write(block)
        progress(done, total)


def _verify(file: Path, remote: Remote, otherwise: str) -> None:
    """Compare a file with the published checksum, and remove it if it differs."""
    digest = hashlib.md5(usedforsecurity=False)
    with opened(file, sys.maxsize) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != remote.md5:
        file.unlink()
        raise UserError(
            f"{file} has the checksum {digest.hexdigest()} instead of the published {remote.md5}: {otherwise}."
        )


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack the regular files of the folder with that name from a .tar.gz: all of them, or none after an error."""
    half = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()  # fails if it is a link, which rmtree does not remove
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                path = _safe_path(member, archive)
                source = members.extractfile(member) if member.isreg() else None
                if source is not None and path.parts[0] == folder.name:
                    destination = half / path
                    destination.parent.mkdir(parents=True, exist_ok=True)
                    with destination.open("wb") as file:
                        shutil.copyfileobj(source, file)
        if not (half / folder.name).is_dir():
            raise UserError(f"{archive} does not contain the folder {folder.name}: download it again.")
        os.replace(half / folder.name, folder)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}): delete it and download it again.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return folder


def _safe_path(member: tarfile.TarInfo, archive: Path) -> PurePosixPath:
    """Return the path of a member. Raise `UserError` if it leaves the archive's folder or is a link."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UserError(
            f"{archive} was not unpacked, because its member {member.name!r} points outside it: download it again."
        )
    if member.islnk() or member.issym():
        raise UserError(f"{archive} was not unpacked, because it contains the link {member.name!r}: download it again.")
    return path
