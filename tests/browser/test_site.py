"""The documentation site, as `make docs` builds it: every link, the search, both colour schemes, two widths.

Without the environment variable PAPI_SITE, the folder of a built site, these tests are skipped.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urldefrag, urljoin

import pytest
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(os.environ.get("PAPI_SITE", ""))
pytestmark = [
    pytest.mark.skipif("PAPI_SITE" not in os.environ, reason="no site was built: make docs"),
    pytest.mark.xdist_group("site"),
]
PAGES = sorted(
    page.relative_to(SITE).as_posix()
    for page in (SITE.rglob("*.html") if "PAPI_SITE" in os.environ else ())
    if page.name not in ("genindex.html", "search.html") and "_static" not in page.parts
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    with closing(server.socket):
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def show(browser: Any, url: str, width: int = 1280, dark: bool = False) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.driver.get(url)
    mode = "dark" if dark else "light"
    browser.run(f"document.documentElement.dataset.mode = document.documentElement.dataset.theme = '{mode}'")
    browser.driver.execute_async_script(  # until colours have stopped changing
        "Promise.allSettled(document.getAnimations().map(each => each.finished)).then(() => arguments[0]())"
    )


def test_every_internal_link_leads_somewhere(browser: Any, address: str) -> None:
    links: dict[str, set[str]] = {}
    anchors: dict[str, set[str]] = {}
    for page in PAGES:
        show(browser, address + page)
        targets = browser.run("return [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))")
        links[page] = {urljoin(address + page, target) for target in targets}
        anchors[address + page] = set(browser.run("return [...document.querySelectorAll('[id]')].map(e => e.id)"))
    broken = []
    for page, targets in links.items():
        for target in sorted(url for url in targets if url.startswith(address)):
            place, anchor = urldefrag(target)
            place = place + "index.html" if place.endswith("/") else place
            known = place in anchors or (SITE / place.removeprefix(address)).is_file()
            if not known or (anchor and place in anchors and anchor not in anchors[place]):
                broken.append(f"{page}: {target.removeprefix(address)}")
    assert broken == []


def test_nothing_is_fetched_from_elsewhere(browser: Any, address: str) -> None:
    for page in PAGES:
        show(browser, address + page)
    assert {url for url in browser.requests() if not url.startswith((address, "data:", "about:"))} == set()
    log = browser.driver.get_log("browser")
    assert [entry["message"] for entry in log if entry["level"] == "SEVERE" and "favicon" not in entry["message"]] == []


def test_search_finds_candidates(browser: Any, address: str) -> None:
    show(browser, address + "search.html?q=candidate")
    found = WebDriverWait(browser.driver, 20).until(
        lambda _: browser.run("return document.querySelectorAll('#search-results li a').length")
    )
    assert found > 3


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_serious_barrier(browser: Any, address: str, axe: str, width: int, dark: bool) -> None:
    serious = []
    browser.driver.set_script_timeout(120)
    for page in PAGES:
        show(browser, address + page, width, dark)
        serious += [f"{page}: {barrier}" for barrier in browser.barriers(axe)]
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1"), page
    assert not serious, "\n".join(serious)
