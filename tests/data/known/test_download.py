"""Downloads from a server on this machine that serves whole, cut, wrong and range-less files."""

import gc
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from papi.data.known import download
from papi.data.known.download import fetch, unpack
from papi.data.known.published import Remote
from papi.errors import UserError

CONTENT = bytes(range(256)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """`/whole` understands ranges, `/plain` does not, `/cut` breaks off, `/wrong` sends something else.

    `/to/…` leads to what follows, `/many` has a length in words, `/endless` and `/huge` send or announce too much.
    """

    seen: list[str | None]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.seen.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.path != "/plain" else 0
        content = b"x" * len(CONTENT) if self.path == "/wrong" else CONTENT
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        if self.path in ("/many", "/endless", "/huge"):
            self.send_response(200)
            if self.path != "/endless":
                self.send_header("Content-Length", "many" if self.path == "/many" else str(10**15))
            self.end_headers()
            with suppress(OSError):  # the other side has heard enough
                for _ in range(1 if self.path == "/many" else 100):
                    self.wfile.write(CONTENT)
            return
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : start + 300_000] if self.path == "/cut" else content[start:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def get(url: str, folder: Path, md5: str = MD5, unpacks_to: str | None = None) -> Path:
    return fetch(Remote(url, "sub/file.bin", md5, unpacks_to), folder, lambda done, total: None)


def test_whole_file(server: str, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    path = fetch(Remote(f"{server}/whole", "file.bin", MD5), tmp_path, lambda *call: calls.append(call))
    assert path.read_bytes() == CONTENT
    assert calls[0] == (0, len(CONTENT))
    assert calls[-1] == (len(CONTENT), len(CONTENT))
    assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]
    fetch(Remote(f"{server}/whole", "file.bin", MD5), tmp_path, lambda *call: None)
    assert len(Handler.seen) == 1  # what is there is not fetched again


def test_a_partial_file_is_gone_on_with(server: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"stopped after 300,000 of 1,024,000 bytes: run the same command to continue"):
        get(f"{server}/cut", tmp_path)
    assert not (tmp_path / "sub/file.bin").exists()
    assert get(f"{server}/whole", tmp_path).read_bytes() == CONTENT
    assert Handler.seen == [None, "bytes=300000-"]
    assert not (tmp_path / "sub/file.bin.part").exists()


def test_a_server_without_ranges_starts_anew(server: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file.bin.part").write_bytes(b"something old")
    assert get(f"{server}/plain", tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_complete(server: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file.bin.part").write_bytes(CONTENT)
    assert get(f"{server}/whole", tmp_path).read_bytes() == CONTENT


def test_a_wrong_file_is_removed(server: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"has the checksum .* instead of the published {MD5}"):
        get(f"{server}/wrong", tmp_path)
    assert not list((tmp_path / "sub").iterdir())


def test_a_wrong_beginning_is_found_out(server: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file.bin.part").write_bytes(b"y" * 1000)
    with pytest.raises(UserError, match="has the checksum"):
        get(f"{server}/whole", tmp_path)
    assert get(f"{server}/whole", tmp_path).read_bytes() == CONTENT


def test_a_missing_file_and_no_network(server: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"HTTP 404 .*save it as .*sub/file.bin"):
        get(f"{server}/missing", tmp_path)
    with pytest.raises(UserError, match=r"http://127.0.0.1:9/x cannot be downloaded .*save it as"):
        get("http://127.0.0.1:9/x", tmp_path)


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for member in members:
            opened.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def regular(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = 3
    return member


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_unpacking(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", regular("set/one"), regular("set/two"), regular("other/three"))
    assert unpack(path, tmp_path / "set") == tmp_path / "set"
    assert sorted(file.name for file in (tmp_path / "set").iterdir()) == ["one", "two"]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (regular("/etc/papi"), "member '/etc/papi' points outside"),
        (regular("set/../../papi"), "points outside it"),
        (link("set/x", "/etc/passwd"), "the link 'set/x'"),
        (link("set/x", "set/one", tarfile.LNKTYPE), "the link 'set/x'"),
    ],
)
def test_archives_that_lead_out(member: tarfile.TarInfo, message: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", regular("set/one"), member)
    with pytest.raises(UserError, match=message):
        unpack(path, tmp_path / "set")
    assert [file.name for file in tmp_path.iterdir()] == ["a.tar.gz"]


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", *(regular(f"set/{k}") for k in range(300)))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack(path, tmp_path / "set")
    with pytest.raises(UserError, match="does not contain the folder other"):
        unpack(archive(tmp_path / "b.tar.gz", regular("set/one")), tmp_path / "other")


def test_an_archive_that_was_put_there(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", regular("set/one"))
    remote = Remote("http://127.0.0.1:9/x", "a.tar.gz", hashlib.md5(path.read_bytes()).hexdigest(), "set")
    assert fetch(remote, tmp_path, lambda done, total: None) == tmp_path / "set"
    (tmp_path / "b.tar.gz").write_bytes(b"half")
    with pytest.raises(UserError, match="the download was incomplete and was removed"):
        fetch(Remote("http://127.0.0.1:9/x", "b.tar.gz", "0" * 32, "b"), tmp_path, lambda done, total: None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # urllib leaves the answer open
@pytest.mark.parametrize(
    "address", ["http://[", "ftp://127.0.0.1/file", "file:///etc/passwd", "data:,x", "gopher://x/"]
)
def test_a_server_leads_to_the_web_only(address: str, server: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"which is not secure|cannot be downloaded"):
        get(f"{server}/to/{address}", tmp_path)
    gc.collect()
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_server_may_lead_to_another_address(server: str, tmp_path: Path) -> None:
    assert get(f"{server}/to/{server}/whole", tmp_path).read_bytes() == CONTENT


def test_a_length_that_is_no_number(server: str, tmp_path: Path) -> None:
    assert get(f"{server}/many", tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["endless", "huge"])
def test_too_much_is_not_kept(path: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 3_000_000)
    with pytest.raises(UserError, match="sends more than 3,000,000 bytes"):
        get(f"{server}/{path}", tmp_path)
    assert not list((tmp_path / "sub").iterdir())


def test_a_partial_file_that_is_a_link(server: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "sub/file.bin.part").symlink_to("../mine")
    with pytest.raises(UserError, match=r"file.bin.part is a link"):
        get(f"{server}/whole", tmp_path)
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_nothing_is_unpacked_through_a_link(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", regular("set/one"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".set.unpacking").symlink_to("elsewhere")
    remote = Remote("http://127.0.0.1:9/x", "a.tar.gz", hashlib.md5(path.read_bytes()).hexdigest(), "set")
    with pytest.raises(UserError, match="cannot be written"):
        fetch(remote, tmp_path, lambda done, total: None)
    assert not list((tmp_path / "elsewhere").iterdir())
