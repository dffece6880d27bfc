"""Deciding in the page: by keyboard and by mouse, kept over reloads and between tabs, and downloaded."""

import time
from pathlib import Path
from typing import Any

import pytest

from desk_pages import decided, downloaded, offered, text, to_desk, written
from papi.report import read_run
from papi.report.desk import order
from papi.report.estimate import estimate
from papi.report.run import Run
from papi.runs.decisions import Answer, read_decisions
from run_folders import AWKWARD, write_run

RIGHT, ENTER = "\ue014", "\ue007"  # in the code of the WebDriver standard
FILES = ['a "quoted", name.png', "<script>alert(1)</script>.png", "line\nbreak.png", "🦊.png", "plain.png"]


@pytest.fixture
def desk(browser: Any, flowers: tuple[Run, Path]) -> Any:
    """The desk in view, with nothing decided."""
    browser.open(flowers[1])
    browser.run("localStorage.clear()")
    to_desk(browser)
    return browser


def test_every_answer_by_keyboard_survives_a_reload_and_downloads(desk: Any, flowers: tuple[Run, Path]) -> None:
    run, images = flowers[0], offered(flowers[0])
    assert run.candidates is not None
    assert run.resolved is not None
    desk.press("2", "1", "n" if not run.candidates[images[2]].all() else "b", "b", "s", "m", "1", "2", ENTER)
    assert decided(desk) == 6
    desk.press("o", *"viol", ENTER)
    assert decided(desk) == 7
    desk.press("u")
    assert decided(desk) == 6
    assert text(desk, "status").startswith("Image 7 of")
    to_desk(desk)
    assert decided(desk) == 6
    desk.press("u")  # over a reload, too
    assert decided(desk) == 5
    desk.press("m", "1", "2", "m", "o", *"VIO", ENTER, "1")
    rows = downloaded(desk)
    assert [int(row["index"]) for row in rows] == images[:8]
    kinds = [row["answer"] for row in rows]
    assert kinds == ["label", "label", kinds[2], "bad", "skip", "several", "label", "label"]
    assert rows[0]["label"] == run.class_name(int(run.resolved.second[images[0]]))
    assert rows[6]["label"] == "violet"
    assert run.dataset is not None
    found = read_decisions(desk.downloads / "decisions.csv", 60, run.class_names, run.dataset.file_names)
    assert list(found) == images[:8]
    assert len(found[images[5]].labels) == 2
    assert desk.console() == []


def test_by_mouse(desk: Any) -> None:
    desk.run("document.querySelector('#desk-buttons button').click()")
    assert decided(desk) == 1
    desk.run("document.querySelector('#desk-film button').click()")
    assert desk.run("return document.querySelector('#desk-buttons button').ariaPressed") == "true"
    desk.run("document.querySelector('#desk-buttons button').click()")  # once more takes it back
    assert decided(desk) == 0
    assert desk.run("return document.getElementById('desk-download').disabled")
    for name in ("bad", "skip"):
        desk.run(f"document.getElementById('desk-{name}').click()")
    desk.run(
        "document.getElementById('desk-note').value = 'odd'; document.querySelector('#desk-buttons button').click()"
    )
    assert [(row["answer"], row["note"]) for row in downloaded(desk)] == [("bad", ""), ("skip", ""), ("label", "odd")]


def test_the_photo_its_crop_and_the_zoom(desk: Any) -> None:
    """The thumbnail gives way to the photo beside the page; the middle square is what the network saw."""
    desk.wait("document.getElementById('desk-picture').naturalWidth === 480")
    desk.wait("!document.getElementById('desk-crop').hidden")
    width = desk.run(
        "const whole = document.getElementById('desk-view').getBoundingClientRect(), part = "
        "document.getElementById('desk-crop').getBoundingClientRect(); return part.width / whole.width"
    )
    assert abs(width - 300 / 480) < 0.01
    assert desk.run("return document.getElementById('desk-view').getBoundingClientRect().width") > 400
    desk.press("z")
    assert desk.run("return document.getElementById('desk-large').open")
    desk.press("1")  # nothing is decided behind the photo
    assert decided(desk) == 0
    desk.press("z")
    assert not desk.run("return document.getElementById('desk-large').open")
    assert [url for url in desk.requests() if not url.startswith(("file:", "data:", "about:"))] == []


def test_filters_and_search(desk: Any, flowers: tuple[Run, Path]) -> None:
    run = flowers[0]
    assert run.resolved is not None
    assert run.candidates is not None
    set_value = "const e = document.getElementById('desk-{}'); e.value = '{}'; e.dispatchEvent(new Event('{}'))"
    desk.run(set_value.format("class", 1, "change"))
    several = run.candidates.sum(1) > 1
    want = int(((run.resolved.label == 1) & several).sum())
    assert f"of {want}." in text(desk, "status")
    desk.run(set_value.format("class", "", "change"))
    desk.run(set_value.format("sure", "low", "change"))
    assert f"of {int(((run.resolved.confidence.round(2) < 0.5) & several).sum())}." in text(desk, "status")
    desk.run(set_value.format("sure", "", "change"))
    desk.run(set_value.format("pair", "0+2", "change"))
    desk.run(set_value.format("pair", "", "change"))
    name = f"#{offered(run)[4]:03}"
    desk.run(set_value.format("search", name, "input"))
    assert "of 1." in text(desk, "status")
    assert name in text(desk, "caption")
    desk.run(set_value.format("search", "no such file", "input"))
    assert "No image" in text(desk, "status")


def test_many_at_once(desk: Any, flowers: tuple[Run, Path]) -> None:
    """All but the marked are confirmed together, and the marked come next. One undo takes all back."""
    desk.press("g")
    shown = desk.run("return [...document.querySelectorAll('#desk-tiles li')].map(each => Number(each.dataset.index))")
    label = int(desk.run("return document.getElementById('desk-grid-class').value"))
    assert 3 < len(shown) <= 24
    desk.press(RIGHT, RIGHT, " ")
    marked = desk.run(
        "return [...document.querySelectorAll('#desk-tiles button')].findIndex(e => e.ariaPressed === 'true')"
    )
    desk.press("c")
    assert decided(desk) == len(shown) - 1
    assert text(desk, "status").startswith("Image 1 of 1")
    desk.press("1")
    assert decided(desk) == len(shown)
    desk.press("u")
    desk.press("u")
    assert decided(desk) == 0
    desk.press("g", "c")
    rows = downloaded(desk)
    assert {int(row["index"]) for row in rows} == set(shown)
    assert {row["label"] for row in rows} == {flowers[0].class_name(label)}
    assert marked == 1


def test_the_estimate_is_that_of_python(desk: Any, flowers: tuple[Run, Path]) -> None:
    run = flowers[0]
    planned = order(run)
    assert planned is not None
    assert run.resolved is not None
    keys = "1121112112" * 5
    desk.press(*keys[:10])
    assert "Decide some more images" in text(desk, "estimate")
    total = len(planned.images)
    desk.press(*keys[: total - 15])
    wrong = {place: key == "2" for place, key in zip(planned.plan.queue(), keys[:10] + keys, strict=False)}
    wrong = dict(list(wrong.items())[: total - 5])
    found = estimate(planned.plan, wrong)
    told = text(desk, "estimate")
    if found is None:
        assert "Decide some more images" in told
    else:
        assert f"About {round(found.wrong)} labels are still wrong (90% interval: {found.low} to {found.high})" in told


def test_two_tabs_lose_nothing(desk: Any, flowers: tuple[Run, Path]) -> None:
    first = desk.driver.current_window_handle
    desk.press("1")
    desk.driver.switch_to.new_window("tab")
    try:
        desk.driver.get(flowers[1].as_uri())
        time.sleep(0.2)
        desk.press("1", "1")
        assert decided(desk) == 3
        desk.driver.switch_to.window(first)
        desk.wait("document.getElementById('desk-count').textContent.startsWith('3 ')")
        desk.press("1")
        assert len({row["index"] for row in downloaded(desk)}) == 4
    finally:
        for handle in desk.driver.window_handles:
            if handle != first:
                desk.driver.switch_to.window(handle)
                desk.driver.close()
        desk.driver.switch_to.window(first)


def test_decisions_of_earlier_pages_are_still_there(desk: Any, flowers: tuple[Run, Path]) -> None:
    image = offered(flowers[0])[0]
    desk.run(f"localStorage.setItem('papi-decisions:{flowers[0].identity}', '[[{image}, 1], [{image + 10**6}, 99]]')")
    to_desk(desk)
    assert decided(desk) == 1


def test_names_that_a_spreadsheet_would_compute(browser: Any, tmp_path: Path) -> None:
    """They are downloaded as text, and read back as what they were."""
    names = ("=1+1", "+ant", "@bee", "-1")
    run = read_run(write_run(tmp_path / "run", names=names, images=40).path)
    assert run.dataset is not None
    files = tuple(f"=cmd{i}.png" for i in range(40))
    object.__setattr__(run.dataset, "file_names", files)
    browser.open(written(run, tmp_path / "report.html"))
    to_desk(browser)
    browser.press(*"1" * 12, "m", "1", "2", "m")
    rows = downloaded(browser)
    assert {row["label"] for row in rows[:12]} == {"'=1+1", "'+ant", "'@bee", "-1"}
    assert all(row["file"] == f"'=cmd{row['index']}.png" for row in rows)
    found = read_decisions(browser.downloads / "decisions.csv", 40, names, files)
    assert list(found) == [int(row["index"]) for row in rows]
    assert run.resolved is not None
    assert all(answer.labels[0] == run.resolved.label[index] for index, answer in list(found.items())[:12])


def test_awkward_files_and_classes(browser: Any, tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", names=AWKWARD, images=40).path)
    assert run.dataset is not None
    object.__setattr__(run.dataset, "file_names", tuple(f"{i}{FILES[i % 5]}" for i in range(40)))
    browser.open(written(run, tmp_path / "report.html"))
    to_desk(browser)
    browser.press("1", "1", "m", "1", "2", "m")
    found = downloaded(browser)
    answers = read_decisions(browser.downloads / "decisions.csv", 40, AWKWARD, run.dataset.file_names)
    assert [Answer("label", (k,)) for k in (0, 1)] != list(answers.values())
    assert [int(row["index"]) for row in found] == list(answers)
    assert browser.console() == []


def test_keys_do_nothing_out_of_sight_or_when_switched_off(desk: Any) -> None:
    desk.run("document.getElementById('run').scrollIntoView()")
    time.sleep(0.2)
    desk.press("1")
    assert decided(desk) == 0
    to_desk(desk)
    desk.run("document.getElementById('desk-keys').click()")
    desk.press("1")
    assert decided(desk) == 0
