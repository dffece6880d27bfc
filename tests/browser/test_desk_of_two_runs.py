"""Two runs on one desk, by keyboard and by touch."""

from pathlib import Path
from typing import Any

import pytest

from desk_pages import downloaded, text, to_desk
from papi.report import comparison_page, read_run
from papi.report.run import Run
from run_folders import write_run


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Path]:
    """Two runs that were given the same candidates, and the page that compares them."""
    home = tmp_path_factory.mktemp("two")
    a = read_run(write_run(home / "a", images=80).path)
    b = read_run(write_run(home / "b", images=80, method="proden", seed=1).path)
    page = home / "report.html"
    page.write_text(comparison_page([a, b], home), encoding="utf-8")
    return a, b, page


@pytest.mark.parametrize("width", [1280, 390], ids=["keyboard", "touch"])
def test_two_runs_by_eye(browser: Any, two_runs: tuple[Run, Run, Path], width: int) -> None:
    """The same images, both answers: the first button or 1 is the first run's, the second or 2 the second's."""
    a, b, page = two_runs
    assert a.resolved is not None
    assert b.resolved is not None
    browser.open(page, width)
    browser.run("localStorage.clear()")
    to_desk(browser)
    for count, answer in enumerate("122", 1):
        if width == 390:
            browser.tap(f"#desk-buttons button:nth-child({answer})")
        else:
            browser.press(answer)
        browser.wait(f"document.getElementById('desk-count').textContent === '{count} decided'")
    assert "a is right on 1, b is right on 2" in text(browser, "corrected")
    rows = downloaded(browser)
    assert all(a.resolved.label[int(row["index"])] != b.resolved.label[int(row["index"])] for row in rows)
    said = [a.class_name(int(run.resolved.label[int(row["index"])])) for run, row in zip((a, b, b), rows, strict=True)]
    assert [row["label"] for row in rows] == said
    if width == 390:
        browser.tap("#desk-undo")
        browser.wait("document.getElementById('desk-count').textContent === '2 decided'")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.console() == []
