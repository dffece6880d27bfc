"""A local server for one user: it serves the page and the pictures of one run, and saves decisions.

It listens only on this machine. Every URL begins with a random token, so other programs and web pages that know the
port get no data. Pictures are requested by number, so no path comes from outside.
"""

import json
import secrets
import threading
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from papi.errors import UserError
from papi.files.reading import parse_json
from papi.report.ledger import Ledger
from papi.report.page import run_page
from papi.report.pictures import PHOTO, THUMBNAIL, encoded
from papi.report.run import Run

HOST = "127.0.0.1"
LARGEST_BODY = 4_000_000  # bytes: more than all decisions that can wait while the server is down
KEPT_PICTURES = 300
Reply = tuple[HTTPStatus, str, bytes]


class RefusedError(Exception):
    """A refused request; the reason is for the log of the browser."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Server(ThreadingHTTPServer):
    """The server of one run. `address` is the URL to open."""

    daemon_threads = True  # open connections do not keep the process alive

    def __init__(self, run: Run, ledger: Ledger, port: int = 0) -> None:
        self.run, self.ledger = run, ledger
        self.token = secrets.token_urlsafe(24)
        self.page = run_page(run, served=True).encode()
        self.pictures: Callable[[int, int], tuple[bytes, str] | None] = lru_cache(KEPT_PICTURES)(self._picture)
        super().__init__((HOST, port), Handler)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names of the server on this machine."""
        return tuple(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    @property
    def address(self) -> str:
        """The URL with its token."""
        return f"http://{self.hosts[0]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that close the connection during a response."""

    def _picture(self, index: int, side: int) -> tuple[bytes, str] | None:
        return encoded(self.run, index, side)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.0"  # one request per connection: a tab notices immediately if the server stops
    server_version = "papi"
    sys_version = ""
    timeout = 30  # seconds without data on a connection

    def do_GET(self) -> None:
        """Serve the page and its pictures."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Save decisions."""
        self._answer(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, to keep the terminal readable."""

    def _answer(self, make: Callable[[str], Reply]) -> None:
        try:
            status, kind, content = make(self._asked())
        except RefusedError as refusal:
            status, kind = refusal.status, "application/json"
            content = json.dumps({"problem": str(refusal)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "private, max-age=3600" if kind.startswith("image/") else "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(content)

    def _asked(self) -> str:
        """Return the path behind the token. Reject requests that do not come from this server's page or the user.

        The host name is checked because a foreign host name can be made to resolve to this machine.
        """
        if self.headers.get("Host") not in self.server.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server only accepts requests to its own address")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        own = origin is None or origin in [f"http://{host}" for host in self.server.hosts]
        if not own or site not in ("none", "same-origin"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server only accepts requests from its own page")
        token, _, rest = self.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "the address has changed: open the one that `papi report` prints")
        return rest

    def _get(self, asked: str) -> Reply:
        if asked == "":
            return HTTPStatus.OK, "text/html; charset=utf-8", self.server.page
        kind, _, number = asked.partition("/")
        side = {"thumbnail": THUMBNAIL, "photo": PHOTO}.get(kind)
        count = 0 if self.server.run.candidates is None else len(self.server.run.candidates)
        plain = number.isascii() and number.isdecimal() and len(number) < 10
        if side is None or not plain or int(number) >= count:
            raise RefusedError(HTTPStatus.NOT_FOUND, "not found")
        found = self.server.pictures(int(number), side)
        if found is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "this image has no picture")
        return HTTPStatus.OK, found[1], found[0]

    def _post(self, asked: str) -> Reply:
        if asked != "decisions" or self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.NOT_FOUND, "not found")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        body = self.rfile.read(int(length))
        try:
            answer = self.server.ledger.exchange(parse_json(body.decode()))
        except ValueError as error:  # a UserError is a ValueError and means that the file cannot be written
            status = HTTPStatus.INSUFFICIENT_STORAGE if isinstance(error, UserError) else HTTPStatus.BAD_REQUEST
            raise RefusedError(status, str(error)) from error
        return HTTPStatus.OK, "application/json", json.dumps(answer).encode()


def usual_port(run: Run) -> int:
    """Return a fixed port per run, so that a browser finds its unsaved decisions after a restart of the server."""
    return 20_000 + int(run.identity[:8], 16) % 20_000


def start(run: Run, file: Path, port: int | None = None) -> Server:
    """Create a server that writes decisions into a file. It starts with `serve_forever`."""
    ledger = Ledger(file, run)
    try:
        return Server(run, ledger, usual_port(run) if port is None else port)
    except OSError as error:
        if port is not None:
            raise UserError(f"port {port} cannot be used ({error.strerror}): choose another with --port.") from error
        return Server(run, ledger)


def serve(server: Server) -> None:
    """Serve until the process is interrupted. Decisions are on disk before they are confirmed."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        server.shutdown()
        server.server_close()
