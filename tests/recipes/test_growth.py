"""The figure of growing costs shows what was measured, and the smallest of each series can be measured."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from recipes import growth
from recipes.growth import Series

SERIES = [Series(title, "of something", ((10, 1.5), (1000, 150.0))) for title in ("A", "B", "C", "D")]


def test_the_picture_holds_the_numbers(tmp_path: Path) -> None:
    growth.write(SERIES, tmp_path / "growth.svg")
    text = "".join(ElementTree.parse(tmp_path / "growth.svg").getroot().itertext())
    for shown in ("CPU ms per step", "1,000", "of something", "A (of something): 10 1.5 ms, 1,000 150.0 ms."):
        assert shown in text


def test_a_step_on_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "SAMPLES", (5_000,))
    monkeypatch.setattr(growth, "TURNS", 1)
    ((count, spent),) = growth.by_samples().points
    assert count == 5_000
    assert spent > 0


def test_the_picture_of_the_docs_is_whole() -> None:
    text = growth.FILE.read_text(encoding="utf-8")
    assert all(f"{count:,}" in text for count in (*growth.SAMPLES, *growth.CLASSES, *growth.PROCESSES))
