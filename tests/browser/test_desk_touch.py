"""Deciding with a finger on a phone."""

from pathlib import Path
from typing import Any

from desk_pages import downloaded, offered
from papi.report.run import Run

UP, DOWN, ENTER = "\ue013", "\ue015", "\ue007"  # in the code of the WebDriver standard


def test_by_touch_on_a_phone(browser: Any, flowers: tuple[Run, Path]) -> None:
    browser.open(flowers[1], width=390)
    browser.run("localStorage.clear()")
    browser.driver.refresh()
    browser.tap("#desk-buttons button")
    browser.wait("document.getElementById('desk-count').textContent.startsWith('1 ')")
    browser.tap("#desk-view")
    browser.wait("document.getElementById('desk-large').open")
    browser.tap("#desk-large")
    browser.wait("!document.getElementById('desk-large').open")
    browser.tap("#desk-mode-grid")
    browser.tap("#desk-tiles button")
    browser.wait("document.querySelector('#desk-tiles button').ariaPressed === 'true'")
    browser.tap("#desk-confirm")
    browser.wait("!document.getElementById('desk-return').hidden")
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_filters_by_touch(browser: Any, flowers: tuple[Run, Path]) -> None:
    """A tap opens a list; what the system's own list does with a finger is beyond the page, so a key chooses there."""
    run = flowers[0]
    assert run.resolved is not None
    assert run.candidates is not None
    browser.open(flowers[1], width=390)
    browser.run("localStorage.clear()")
    browser.driver.refresh()
    browser.tap(".filters summary")
    browser.wait("document.querySelector('.filters').open")
    small = browser.run(
        "return [...document.querySelectorAll('#desk button, #desk select, #desk input, #desk summary')].filter("
        "each => each.offsetParent && each.getBoundingClientRect().height < 44).map(each => each.outerHTML)"
    )
    assert small == []  # for a finger
    browser.tap("#desk-sure")
    browser.wait("document.activeElement.id === 'desk-sure'")
    browser.press(DOWN, ENTER)
    few = int(((run.resolved.confidence.round(2) < 0.5) & (run.candidates.sum(1) > 1)).sum())
    browser.wait(f"document.getElementById('desk-status').textContent.includes('of {few}.')")
    browser.tap("#desk-sure")
    browser.press(UP, ENTER)
    browser.tap("#desk-search")
    name = f"#{offered(run)[4]:03}"
    browser.press(*name)
    browser.wait("document.getElementById('desk-status').textContent.includes('of 1.')")
    browser.tap("#desk-buttons button:nth-child(2)")
    browser.wait("document.getElementById('desk-count').textContent.startsWith('1 ')")
    assert [int(row["index"]) for row in downloaded(browser)] == [offered(run)[4]]
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    assert browser.console() == []
