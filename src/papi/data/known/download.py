"""Downloads of published files. A file has its name on disk only when it is complete and verified."""

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

LARGEST = 2**30  # bytes of one file: five times the largest that is published
_TIMEOUT = 30  # seconds without a byte
_BLOCK = 1 << 18


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address of the web, and from an encrypted connection only to another one."""

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
            raise UserError(f"{req.full_url} leads to {newurl}, which is not followed: fetch the file yourself.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(remote: Remote, data_dir: Path, progress: Callable[[int, int], None]) -> Path:
    """Download a file unless it is there, verify it, and unpack it if it is an archive.

    `progress` is told the bytes done and in all. A broken download leaves a `.part` file, and the next call resumes it.
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
            _verify(part, remote, "The server sent something else; try again later")
            os.replace(part, target)
        elif remote.unpacks_to is not None:
            _verify(target, remote, "It was not downloaded completely")
        return target if unpacked is None else unpack(target, unpacked)
    except OSError as error:
        raise UserError(f"{error.filename or data_dir} cannot be written: {error.strerror or error}.") from error


def _download(remote: Remote, part: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Fill the partial file: from its end if the server supports that, else from the start."""
    require_regular(part)  # a link would decide which file is written
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={start}-"} if start else {})
    instead = f"Fetch {remote.url} yourself and put it at {target}"
    try:
        with urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT) as answer:
            resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            start = start if resumed else 0
            length = answer.headers.get("Content-Length", "")
            total = start + int(length) if length.isdecimal() and len(length) < 20 else 0  # 0: the server does not say
            flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if resumed else os.O_TRUNC)
            with os.fdopen(open_regular(part, flags), "wb") as file:
                _copy(answer, file.write, start, total, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing is left to send: the part is as long as the file, or longer
            return
        raise UserError(f"{remote.url} cannot be downloaded (HTTP {error.code} {error.reason}). {instead}.") from error
    except UserError:
        raise
    # A ValueError is an address that is none, to which the server leads.
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{remote.url} cannot be downloaded ({reason}). {instead}, or try again.") from error
    except _TooLargeError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{remote.url} sends more than {LARGEST:,} bytes: it is not the published file.") from error
    if total and part.stat().st_size < total:
        raise UserError(
            f"{remote.url} broke off after {part.stat().st_size:,} of {total:,} bytes: the same command goes on there."
        )


class _TooLargeError(Exception):
    """A server sends more than any published file has."""


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
    """Compare with the published checksum, and remove a file that differs."""
    digest = hashlib.md5(usedforsecurity=False)
    with opened(file, sys.maxsize) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != remote.md5:
        file.unlink()
        raise UserError(
            f"{file} had the checksum {digest.hexdigest()}; {remote.md5} is published. {otherwise}: it was removed."
        )


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack the regular files in the folder of that name from a .tar.gz: all of them, or none after an error."""
    half = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()  # an error if a link is in its place, which rmtree leaves there
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
            raise UserError(f"{archive} has no folder {folder.name} in it. Fetch it again.")
        os.replace(half / folder.name, folder)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}). Delete it and fetch it again.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return folder


def _safe_path(member: tarfile.TarInfo, archive: Path) -> PurePosixPath:
    """The path of a member, if it is inside the folder of the archive and not a link."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UserError(
            f"{archive} has the member {member.name!r}, which leads out of the archive: it is not unpacked."
        )
    if member.islnk() or member.issym():
        raise UserError(f"{archive} has the link {member.name!r} in it, which could lead anywhere: it is not unpacked.")
    return path
