"""The desk that a server hands out: whole photos, decisions on disk at once, and nothing lost when things go wrong."""

import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from desk_pages import serving
from papi.report import read_run
from papi.report.run import Run
from papi.report.server import Server, start
from papi.runs.decisions import Answer, read_answers
from photo_runs import CLASSES, write_photo_run


@pytest.fixture(scope="session")
def beds(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(write_photo_run(tmp_path_factory.mktemp("served") / "beds").path)


@pytest.fixture
def serve(beds: Run) -> Iterator[Callable[[], Server]]:
    """`serve()` starts a server; all are ended with the test, and its decisions are removed."""
    started: list[Server] = []

    def begin() -> Server:
        server = start(beds, beds.path / "decisions.csv")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        started.append(server)
        return server

    yield begin
    for server in started:
        stop(server)
    (beds.path / "decisions.csv").unlink(missing_ok=True)


def stop(server: Server) -> None:
    server.shutdown()
    server.server_close()


def opened(browser: Any, address: str, clear: bool = True, **options: Any) -> None:
    browser.open(address, **options)
    if clear:
        browser.run("localStorage.clear()")
        browser.driver.refresh()
    browser.run("document.documentElement.style.scrollBehavior = 'auto'; desk.scrollIntoView({block: 'start'})")
    time.sleep(0.3)


def saved(run: Run) -> dict[int, Answer]:
    file = run.path / "decisions.csv"
    assert run.dataset is not None
    return read_answers(file, 60, CLASSES, run.dataset.file_names) if file.exists() else {}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_decisions_are_on_disk_at_once(browser: Any, beds: Run, serve: Callable[[], Server]) -> None:
    server = serve()
    opened(browser, server.address)
    browser.wait("document.getElementById('desk-picture').naturalWidth === 480")
    browser.press("1", "b", "m", "1", "2", "m")
    until(lambda: len(saved(beds)) == 3)
    assert [answer.kind for answer in saved(beds).values()] == ["label", "bad", "several"]
    opened(browser, server.address, clear=False)
    browser.wait("document.getElementById('desk-count').textContent.startsWith('3 ')")
    browser.press("u")
    until(lambda: len(saved(beds)) == 2)
    here = (f"http://127.0.0.1:{server.server_port}/", "data:", "about:", "chrome:")
    assert [url for url in browser.requests() if not url.startswith(here)] == []
    assert browser.console() == []


def test_two_tabs(browser: Any, beds: Run, serve: Callable[[], Server]) -> None:
    server = serve()
    opened(browser, server.address)
    first = browser.driver.current_window_handle
    browser.press("1")
    browser.driver.switch_to.new_window("tab")
    try:
        browser.driver.get(server.address)
        browser.wait("document.getElementById('desk-count').textContent.startsWith('1 ')")
        browser.press("1", "s")
        until(lambda: len(saved(beds)) == 3)
        browser.driver.switch_to.window(first)
        browser.wait("document.getElementById('desk-count').textContent.startsWith('3 ')")
        browser.press("1")
        until(lambda: len(saved(beds)) == 4)
    finally:
        for handle in browser.driver.window_handles:
            if handle != first:
                browser.driver.switch_to.window(handle)
                browser.driver.close()
        browser.driver.switch_to.window(first)


def test_a_server_that_was_killed(browser: Any, tmp_path: Path) -> None:
    """A real process. What is decided meanwhile waits in the browser, and is saved by the next one."""
    run = read_run(write_photo_run(tmp_path / "beds").path)
    with serving(run.path) as (process, address):
        opened(browser, address)
        browser.press("1")
        until(lambda: len(saved(run)) == 1)
        browser.press("1")  # perhaps on its way, perhaps saved: it must be there in the end
        process.kill()
    browser.press("1", "1")
    browser.wait("!document.getElementById('desk-trouble').hidden")
    assert "not saved yet" in browser.run("return document.getElementById('desk-saved').textContent")
    assert len(saved(run)) in (1, 2)
    with serving(run.path) as (_, again):
        assert urlsplit(again).port == urlsplit(address).port
        opened(browser, again, clear=False)
        until(lambda: len(saved(run)) == 4)
        browser.wait("document.getElementById('desk-trouble').hidden")
        assert browser.run("return document.getElementById('desk-count').textContent") == "4 decided"


def test_a_full_disk(browser: Any, beds: Run, serve: Callable[[], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    opened(browser, server.address)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        browser.press("1", "1")
        browser.wait("document.getElementById('desk-trouble').textContent.includes('No space left')")
        assert saved(beds) == {}
    until(lambda: len(saved(beds)) == 2)  # sent again by itself


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_it_fits_and_is_accessible(browser: Any, serve: Callable[[], Server], axe: str, width: int, dark: bool) -> None:
    opened(browser, serve().address, width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    for many in (False, True):
        if many:
            browser.run("document.getElementById('desk-mode-grid').click()")
        assert browser.barriers(axe) == []


def test_the_command_ends_with_what_to_do_next(beds: Run) -> None:
    """A real process, ended as a person ends it."""
    with serving(beds.path) as (process, address):
        assert process.stdout is not None
        assert b"Images to review" in urllib.request.urlopen(address, timeout=30).read()
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 0
    assert "No decisions were made" in said
