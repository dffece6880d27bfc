"""The report as people meet it: in a browser, from a file, with a mouse or with keys, by day and by night."""

from pathlib import Path
from typing import Any

import pytest

from papi.report import comparison_page, read_run, run_page
from run_folders import AWKWARD, write_run


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of one run, of one without true labels, of one that has not finished, and of two runs."""
    where = tmp_path_factory.mktemp("pages")
    whole = read_run(write_run(where / "whole", names=AWKWARD).path)
    blind = read_run(write_run(where / "blind", truth=False).path)
    unfinished = write_run(where / "unfinished", names=AWKWARD)
    unfinished.summary_file.unlink()
    unfinished.arrays_file.unlink()
    second = read_run(write_run(where / "second", names=AWKWARD, method="proden", seed=1).path)
    texts = {
        "run": run_page(whole),
        "blind": run_page(blind),
        "unfinished": run_page(read_run(unfinished.path)),
        "comparison": comparison_page([whole, second]),
    }
    for name, text in texts.items():
        (where / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: where / f"{name}.html" for name in texts}


KINDS = ("run", "blind", "unfinished", "comparison")


@pytest.mark.parametrize("kind", KINDS)
def test_no_errors_no_requests_and_everything_is_visible(browser: Any, pages: dict[str, Path], kind: str) -> None:
    browser.open(pages[kind])
    assert browser.console() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))] == []
    unseen = browser.run(
        """return [...document.querySelectorAll("img, figure, svg")].filter(e => {
             if (e.closest("[hidden], dialog, noscript")) return false;
             const box = e.getBoundingClientRect(), style = getComputedStyle(e);
             const empty = e.tagName === "IMG" && !e.naturalWidth;
             return box.width < 20 || box.height < 20 || style.visibility !== "visible" || empty;
           }).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert unseen == []
    if kind in ("run", "comparison"):
        assert browser.run("return document.images.length") > 5
        assert browser.run("return document.querySelectorAll('svg').length") >= 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows(browser: Any, pages: dict[str, Path], kind: str, dark: bool, width: int) -> None:
    browser.open(pages[kind], width, dark)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background[4:-1].split(","))
    assert (brightness < 200) == dark


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_accessible(browser: Any, pages: dict[str, Path], axe: str, dark: bool, width: int) -> None:
    for kind in ("run", "comparison", "unfinished" if dark else "blind"):
        browser.open(pages[kind], width, dark)
        browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert (kind, browser.barriers(axe)) == (kind, [])


def test_awkward_names_are_text(browser: Any, pages: dict[str, Path]) -> None:
    for kind in ("run", "comparison"):
        browser.open(pages[kind])
        text = browser.run("return document.body.textContent")
        for name in AWKWARD:
            assert name in text
        assert browser.console() == []


def test_print_shows_images_and_no_controls(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run("return getComputedStyle(desk).display") == "none"
    assert browser.run("return document.querySelector('.strip img').getBoundingClientRect().width") > 20
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
