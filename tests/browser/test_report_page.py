"""The report as people meet it: in a browser, from a file, with a mouse or with keys, by day and by night."""

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papi.report import comparison_page, read_run, run_page
from papi.runs.decisions import read_decisions
from run_folders import AWKWARD, write_run

LEFT, RIGHT = "\ue012", "\ue014"  # arrows, in the code of the WebDriver standard
FILES = ['a "quoted", name.png', "<script>alert(1)</script>.png", "line\nbreak.png", "🦊.png", "plain.png"]


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


@pytest.mark.parametrize(
    ("kind", "dark"), [("run", False), ("run", True), ("comparison", True), ("blind", False), ("unfinished", True)]
)
def test_accessible(browser: Any, pages: dict[str, Path], axe: str, kind: str, dark: bool) -> None:
    browser.open(pages[kind], dark=dark)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.run(axe)
    found = browser.driver.execute_async_script(
        "const done = arguments[arguments.length - 1]; axe.run().then(result => done(result.violations))"
    )
    bad = [(each["id"], each["nodes"][0]["html"][:120]) for each in found if each["impact"] in ("serious", "critical")]
    assert bad == []


def test_awkward_names_are_text(browser: Any, pages: dict[str, Path]) -> None:
    for kind in ("run", "comparison"):
        browser.open(pages[kind])
        text = browser.run("return document.body.textContent")
        for name in AWKWARD:
            assert name in text
        assert browser.console() == []


def status(browser: Any) -> str:
    return str(browser.run("return document.getElementById('desk-status').textContent"))


def to_desk(browser: Any) -> None:
    browser.run("document.documentElement.style.scrollBehavior = 'auto'; desk.scrollIntoView({block: 'center'})")
    time.sleep(0.2)  # the observer that tells whether the box is in view answers a frame later


def downloaded(browser: Any) -> list[dict[str, str]]:
    browser.run("document.getElementById('desk-download').click()")
    file = browser.downloads / "decisions.csv"
    deadline = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < deadline, "nothing was downloaded"
        time.sleep(0.05)
    assert file.read_bytes().startswith(b"index,file,label\r\n")
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_decisions_by_keyboard_survive_a_reload_and_download(browser: Any, tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", names=AWKWARD, images=40).path)
    assert run.dataset is not None
    object.__setattr__(run.dataset, "file_names", tuple(FILES[i % 5] for i in range(40)))
    page = tmp_path / "report.html"
    page.write_text(run_page(run), encoding="utf-8")
    assert run.resolved is not None
    assert run.candidates is not None
    order = [int(i) for i in np.argsort(run.resolved.rank) if run.candidates[i].sum() > 1]

    browser.open(page)
    to_desk(browser)
    browser.press("2", "1", RIGHT, "1")
    assert "3 decided" in status(browser)
    browser.press("u")
    assert "2 decided" in status(browser)
    assert "Image 4 of" in status(browser)
    browser.press(LEFT, "9")  # too few candidates for a nine: nothing happens
    assert status(browser).startswith("Image 3 of")
    browser.press("1")

    browser.driver.refresh()
    assert "3 decided" in status(browser)
    rows = downloaded(browser)
    want = {
        order[0]: run.class_name(int(run.resolved.second[order[0]])),
        order[1]: run.class_name(int(run.resolved.label[order[1]])),
        order[2]: run.class_name(int(run.resolved.label[order[2]])),
    }
    assert {int(row["index"]): row["label"] for row in rows} == want
    assert [row["file"] for row in rows] == [FILES[index % 5] for index in order[:3]]
    assert browser.console() == []


def test_decisions_that_a_spreadsheet_would_compute(browser: Any, tmp_path: Path) -> None:
    """They are downloaded as text, and read back as what they were."""
    names = ("=1+1", "+ant", "@bee", "-1")
    run = read_run(write_run(tmp_path / "run", names=names, images=40).path)
    assert run.dataset is not None
    files = tuple(f"=cmd{i}.png" for i in range(40))
    object.__setattr__(run.dataset, "file_names", files)
    (tmp_path / "report.html").write_text(run_page(run), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    to_desk(browser)
    browser.press(*"1" * 12)
    rows = downloaded(browser)
    assert {row["label"] for row in rows} == {"'=1+1", "'+ant", "'@bee", "-1"}
    assert all(row["file"] == f"'=cmd{row['index']}.png" for row in rows)
    found = read_decisions(browser.downloads / "decisions.csv", 40, names, files)
    assert found.rows.tolist() == sorted(int(row["index"]) for row in rows)
    assert run.resolved is not None
    assert found.labels.tolist() == run.resolved.label[found.rows].tolist()


def test_decisions_by_mouse(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["blind"])
    to_desk(browser)
    browser.run("document.querySelector('#desk-buttons button').click()")
    assert "1 decided" in status(browser)
    browser.run("document.querySelectorAll('#film button')[0].click()")
    assert browser.run("return document.querySelector('#desk-buttons button').ariaPressed") == "true"
    browser.run("document.querySelector('#desk-buttons button').click()")  # once more takes it back
    assert "0 decided" in status(browser)
    assert browser.run("return document.getElementById('desk-download').disabled")


def test_keys_do_nothing_out_of_sight_or_when_switched_off(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    time.sleep(0.2)
    browser.press("1")
    assert "0 decided" in status(browser)
    to_desk(browser)
    browser.run("document.getElementById('desk-keys').click()")
    browser.press("1")
    assert "0 decided" in status(browser)


def test_print_shows_images_and_no_controls(browser: Any, pages: dict[str, Path]) -> None:
    browser.open(pages["run"])
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run("return getComputedStyle(desk).display") == "none"
    assert browser.run("return document.querySelector('#film img').getBoundingClientRect().width") > 20
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
