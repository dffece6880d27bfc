"""The desk on real photographs, where a folder of them is named: PAPI_PHOTOS=FOLDER, with a folder for each class."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papi.config import CandidatesConfig, RunConfig, to_dict
from papi.report import read_run, run_page
from papi.report.run import Run
from papi.report.server import Server, start
from papi.runs.folder import RunFolder
from papi.runs.schema import Arrays, Record, Sets
from papi.setup.data import load_dataset

PHOTOS = os.environ.get("PAPI_PHOTOS")
pytestmark = pytest.mark.skipif(PHOTOS is None, reason="no folder of photographs is named: PAPI_PHOTOS=FOLDER")


@pytest.fixture(scope="module")
def clothes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on the photographs, with beliefs drawn at random."""
    config = RunConfig(data=str(Path(str(PHOTOS)).resolve()), candidates=CandidatesConfig(kind="uniform"), data_size=32)
    dataset = load_dataset(config)
    assert dataset.labels is not None
    random, classes = np.random.default_rng(0), len(dataset.class_names)
    sets = (random.random((len(dataset.labels), classes)) < 0.3) | (np.arange(classes) == dataset.labels[:, None])
    belief = random.random(sets.shape) * sets
    folder = RunFolder(tmp_path_factory.mktemp("clothes") / "run")
    folder.path.mkdir()
    folder.write_record(Record(config=to_dict(config), identity=to_dict(config), classes=dataset.class_names))
    folder.write_sets(Sets(candidates=sets, file_names=np.array(dataset.file_names)))
    folder.write_arrays(Arrays(confidence=(belief / belief.sum(1, keepdims=True)).astype(np.float32)))
    return read_run(folder.path)


@pytest.fixture(scope="module")
def page(clothes: Run) -> Path:
    file = clothes.path / "report.html"
    file.write_text(run_page(clothes, file.parent), encoding="utf-8")
    assert file.stat().st_size < 8e6
    return file


@pytest.fixture(scope="module")
def served(clothes: Run) -> Iterator[Server]:
    server = start(clothes, clothes.path / "decisions.csv")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_photos_are_shown_whole(browser: Any, page: Path, axe: str, width: int, dark: bool) -> None:
    browser.open(page, width, dark)
    browser.run("localStorage.clear()")
    browser.driver.refresh()
    browser.wait("document.getElementById('desk-picture').naturalWidth >= 200")
    browser.run("desk.scrollIntoView({behavior: 'instant'})")
    time.sleep(0.3)
    for _ in range(20):
        browser.press("1")
        browser.wait("document.getElementById('desk-picture').naturalWidth >= 200")
    assert browser.run("return document.getElementById('desk-count').textContent") == "20 decided"
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.barriers(axe) == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))] == []
    assert browser.console() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_served_photos_by_touch(browser: Any, served: Server, axe: str, dark: bool) -> None:
    browser.open(served.address, width=390, dark=dark)
    browser.wait("document.getElementById('desk-picture').naturalWidth >= 200")
    before = len(served.ledger.answers)
    for n in range(1, 6):
        browser.tap("#desk-buttons button")
        browser.wait(f"document.getElementById('desk-count').textContent === '{before + n} decided'")
        browser.wait("document.getElementById('desk-picture').naturalWidth >= 200")
    browser.wait("document.getElementById('desk-saved').textContent === ''")
    assert len(served.ledger.answers) == before + 5
    browser.tap("#desk-mode-grid")
    browser.wait("document.querySelector('#desk-tiles img').naturalHeight >= 200")
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    assert browser.barriers(axe) == []
    assert browser.console() == []
