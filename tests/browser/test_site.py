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


# What a colour scheme can change. The other rules ask for structure, which is the same in both.
COLOUR_RULES = ("color-contrast", "link-in-text-block")
STILL = "*, ::before, ::after { transition: none !important; animation: none !important }"


def show(browser: Any, url: str, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.driver.get(url)


def paint(browser: Any, colours: str) -> None:
    """Choose a colour scheme; colours change at once, because the checker must not see them fade."""
    browser.run(f"""
        document.adoptedStyleSheets = [new CSSStyleSheet()];
        document.adoptedStyleSheets[0].replaceSync("{STILL}");
        document.documentElement.dataset.mode = document.documentElement.dataset.theme = "{colours}";
    """)


def test_every_internal_link_leads_somewhere(browser: Any, address: str) -> None:
    links: dict[str, set[str]] = {}
    anchors: dict[str, set[str]] = {}
    for page in PAGES:
        browser.driver.get(address + page)
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


def test_search_finds_candidates(browser: Any, address: str) -> None:
    browser.driver.get(address + "search.html?q=candidate")
    found = WebDriverWait(browser.driver, 20).until(
        lambda _: browser.run("return document.querySelectorAll('#search-results li a').length")
    )
    assert found > 3


@pytest.fixture
def reader(chromium: Any) -> Any:
    """The window as the last test left it: chromium starts a process for each page that follows an empty one."""
    chromium.driver.set_script_timeout(120)
    chromium.console()
    chromium.requests()
    return chromium


@pytest.mark.parametrize("page", PAGES)
def test_everyone_can_read_the_page(reader: Any, address: str, axe: str, page: str) -> None:
    """In light and dark, on a laptop and on a phone; nothing comes from another server."""
    for width in (1280, 390):
        show(reader, address + page, width)
        assert reader.run("return document.documentElement.scrollWidth <= window.innerWidth + 1"), width
        for colours, rules in (("light", ()), ("dark", COLOUR_RULES)):
            paint(reader, colours)
            assert (width, colours, reader.barriers(axe, *rules)) == (width, colours, [])
    assert {url for url in reader.requests() if not url.startswith((address, "data:", "about:"))} == set()
    log = reader.driver.get_log("browser")
    assert [entry["message"] for entry in log if entry["level"] == "SEVERE" and "favicon" not in entry["message"]] == []
