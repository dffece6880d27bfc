"""The command that serves a desk, killed as a real process while two tabs decide."""

import itertools
import json
import signal
import threading
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from desk_pages import serving
from papi.runs.decisions import read_answers
from photo_runs import CLASSES, write_photo_run

IMAGES = 12


def told(address: str, changes: list[list[object]]) -> Any:
    """What the server answers to changes."""
    body = json.dumps({"version": -1, "changes": changes}).encode()
    request = urllib.request.Request(f"{address}decisions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)


class Tab(threading.Thread):
    """It decides on every second image, again and again with a higher number in the note, until nobody answers."""

    def __init__(self, address: str, first: int, known: dict[int, int]) -> None:
        super().__init__(daemon=True)
        self.address, self.images, self.known = address, range(first, IMAGES, 2), known
        self.answered = 0
        self.sent = (0, 0)  # the image and the number that are on their way

    def run(self) -> None:
        number = max(self.known.values(), default=0)
        for image in itertools.cycle(self.images):
            number += 1
            self.sent = image, number
            try:
                told(self.address, [[image, "label", [image % 3], str(number)]])
            except (OSError, ValueError, HTTPException):  # the process has gone, or its answer broke off
                return
            self.known[image] = number
            self.answered += 1


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_photo_run(tmp_path / "run").path


def test_what_was_answered_is_kept(run: Path) -> None:
    known: dict[int, int] = {}
    tabs: list[Tab] = []
    for wanted in (9, 40):  # the second process begins with what the first had answered
        with serving(run) as (process, address):
            numbers = {image: int(note) for image, _, _, note in told(address, [])["decisions"]}
            kept(numbers, known, tabs)
            known |= numbers
            tabs = [Tab(address, first, known) for first in (0, 1)]
            for tab in tabs:
                tab.start()
            deadline = time.monotonic() + 30
            while sum(tab.answered for tab in tabs) < wanted:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            for tab in tabs:
                tab.join(20)
                assert not tab.is_alive()
        assert process.returncode == -signal.SIGKILL
    names = tuple(f"bed 1/flower #{i:03}.jpg" for i in range(60))
    answers = read_answers(run / "decisions.csv", 60, CLASSES, names)
    assert {answer.labels for answer in answers.values()} == {(0,), (1,), (2,)}
    kept({image: int(answer.note) for image, answer in answers.items()}, known, tabs)


def kept(found: dict[int, int], known: dict[int, int], tabs: list[Tab]) -> None:
    """Everything that was answered is there; beyond it, only what was on its way when the process ended."""
    on_their_way = {tab.sent for tab in tabs}
    assert found.keys() >= known.keys()
    assert all(number == known.get(image) or (image, number) in on_their_way for image, number in found.items())
