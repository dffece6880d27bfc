"""The server of the desk: what it hands out, and to whom it does not."""

import http.client
import io
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from papi.errors import UserError
from papi.report import read_run
from papi.report.server import Server, start, usual_port
from photo_runs import write_photo_run


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = write_photo_run(tmp_path_factory.mktemp("served") / "run")
    server = start(read_run(folder.path), folder.path / "decisions.csv")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def ask(
    server: Server, path: str, method: str = "GET", body: object = None, token: str | None = None, **headers: str
) -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        named = {"Content-Type": "application/json"} | named
    content = None if body is None else json.dumps(body).encode()
    with closing(connection):
        connection.request(method, f"/{server.token if token is None else token}/{path}", content, named)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()


def test_the_page_and_its_pictures(served: Server) -> None:
    status, headers, page = ask(served, "")
    assert status == 200
    assert headers["X-Frame-Options"] == "DENY"
    assert b'"served": true' in page or b'"served":true' in page
    assert served.address.startswith("http://127.0.0.1:")
    for kind, size in (("thumbnail", (320, 200)), ("photo", (480, 300))):
        status, headers, content = ask(served, f"{kind}/3")
        assert (status, headers["Content-Type"]) == (200, "image/jpeg")
        assert Image.open(io.BytesIO(content)).size == size


@pytest.mark.parametrize(
    "path",
    ["photo/60", "photo/-1", "photo/x", "photo/", "photo/1/..", "../config.json", "photo/../../config.json",
     "photo/%2e%2e", "photo/%D9%A3", "config.json", "decisions", "photo/" + "9" * 30, "?", "photo/1?x"],
)  # fmt: skip
def test_nothing_but_pictures_of_the_run(served: Server, path: str) -> None:
    assert ask(served, path)[0] == 404


@pytest.mark.parametrize("token", ["", "x", "..", "a" * 32])
def test_the_token_is_needed(served: Server, token: str) -> None:
    assert ask(served, "", token=token)[0] == 403
    assert ask(served, "decisions", "POST", {"version": 0, "changes": []}, token=token)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_strangers_are_refused(served: Server, headers: dict[str, str]) -> None:
    assert ask(served, "photo/1", **headers)[0] == 403
    assert ask(served, "decisions", "POST", {"version": 0, "changes": [[1, "bad"]]}, **headers)[0] == 403
    assert not served.ledger.file.exists()


def test_decisions_are_taken(served: Server) -> None:
    own = {"Origin": f"http://127.0.0.1:{served.server_port}", "Sec_Fetch_Site": "same-origin"}
    status, _, content = ask(served, "decisions", "POST", {"version": -1, "changes": [[1, "label", [2], ""]]}, **own)
    assert status == 200
    assert json.loads(content)["decisions"] == [[1, "label", [2], ""]]
    text = served.ledger.file.read_text()
    assert text.splitlines()[1] == "1,bed 1/flower #001.jpg,violet,label,"
    ask(served, "decisions", "POST", {"version": -1, "changes": [[1, None]]}, **own)
    served.ledger.file.unlink()


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"changes": [[99, "bad"]]}, {}, 400),
        ({"changes": [[1, "label", [7]]]}, {}, 400),
        ([], {}, 400),
        ({"changes": []}, {"Content_Type": "text/plain"}, 404),
        ({"changes": ["x" * 5_000_000]}, {}, 413),
    ],
)
def test_what_is_no_decision(served: Server, body: object, headers: dict[str, str], status: int) -> None:
    try:
        found, _, content = ask(served, "decisions", "POST", body, **headers)
    except (BrokenPipeError, ConnectionResetError):  # it hangs up before all of it has come
        assert status == 413
        return
    assert found == status
    assert json.loads(content)["problem"]


def test_other_methods(served: Server) -> None:
    assert ask(served, "", "PUT")[0] == 501


def test_a_port_that_is_taken(served: Server) -> None:
    """The usual one gives way to any; one that a person has named does not."""
    assert served.server_port == usual_port(served.run)
    other = start(served.run, served.ledger.file)
    assert other.server_port != served.server_port
    other.server_close()
    with pytest.raises(UserError, match="choose another with --port"):
        start(served.run, served.ledger.file, served.server_port)


def test_decisions_that_cannot_be_read_are_not_overwritten(tmp_path: Path, served: Server) -> None:
    file = tmp_path / "decisions.csv"
    file.write_text("index,label\n1,lily\n")
    with pytest.raises(UserError, match="unknown label 'lily'"):
        start(served.run, file)
    assert file.read_text() == "index,label\n1,lily\n"
