"""The desk, in a browser or served by the command, for tests that decide at it."""

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from papi.report import run_page
from papi.report.desk import order
from papi.report.run import Run


def written(run: Run, page: Path) -> Path:
    page.write_text(run_page(run, page.parent), encoding="utf-8")
    return page


def to_desk(browser: Any) -> None:
    browser.driver.refresh()
    browser.run("document.documentElement.style.scrollBehavior = 'auto'; desk.scrollIntoView({block: 'start'})")
    time.sleep(0.2)  # the observer that tells whether the box is in view answers a frame later


def offered(run: Run) -> list[int]:
    found = order(run)
    assert found is not None
    return [int(found.images[place]) for place in found.plan.queue()]


def text(browser: Any, name: str) -> str:
    return str(browser.run(f"return document.getElementById('desk-{name}').textContent"))


def decided(browser: Any) -> int:
    return int(text(browser, "count").split()[0])


def downloaded(browser: Any) -> list[dict[str, str]]:
    browser.run("document.getElementById('desk-download').click()")
    file = browser.downloads / "decisions.csv"
    deadline = time.monotonic() + 10
    # Chromium holds the name with an empty file, then moves the finished download over it.
    while not file.exists() or not file.stat().st_size:
        assert time.monotonic() < deadline, "nothing was downloaded"
        time.sleep(0.05)
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of `papi report --serve`, and its address. It is killed in the end, if it has not ended by then."""
    command = [sys.executable, "-m", "papi", "report", str(folder), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()
