"""Downloads of published files. A file has its name on disk only when it is complete and verified."""

import hashlib
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from papi.data.known.published import Remote
from papi.errors import UserError

_TIMEOUT = 30  # seconds without a byte
_BLOCK = 1 << 18


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
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"Range": f"bytes={start}-"} if start else {})
    instead = f"Fetch {remote.url} yourself and put it at {target}"
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            start = start if resumed else 0
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length else 0
            with part.open("ab" if resumed else "wb") as file:
                _copy(answer, file.write, start, total, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # nothing is left to send: the part is as long as the file, or longer
            return
        raise UserError(f"{remote.url} cannot be downloaded (HTTP {error.code} {error.reason}). {instead}.") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{remote.url} cannot be downloaded ({reason}). {instead}, or try again.") from error
    if total and part.stat().st_size < total:
        raise UserError(
            f"{remote.url} broke off after {part.stat().st_size:,} of {total:,} bytes: the same command goes on there."
        )


def _copy(
    answer: http.client.HTTPResponse,
    write: Callable[[bytes], int],
    done: int,
    total: int,
    progress: Callable[[int, int], None],
) -> None:
    progress(done, total)
    while block := answer.read(_BLOCK):
        write(block)
        done += len(block)
        progress(done, total)


def _verify(file: Path, remote: Remote, otherwise: str) -> None:
    """Compare with the published checksum, and remove a file that differs."""
    digest = hashlib.md5(usedforsecurity=False)
    with file.open("rb") as stream:
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
    try:
        with tarfile.open(archive, "r:gz") as opened:
            for member in opened:
                path = _safe_path(member, archive)
                source = opened.extractfile(member) if member.isreg() else None
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
