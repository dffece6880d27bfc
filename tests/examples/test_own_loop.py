"""The example with a loop of one's own, and the page that quotes it."""

from pathlib import Path

import pytest

from pages import DOCS, block_with

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_it_learns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    import own_loop

    assert own_loop.main(epochs=3) > 0.3  # chance is 0.1
    assert "resolved labels" in capsys.readouterr().out


def test_the_page_shows_the_calls_of_the_example() -> None:
    example = [line.strip() for line in (EXAMPLES / "own_loop.py").read_text().splitlines()]
    quoted = block_with((DOCS / "own-loop.md").read_text(), "optimizer.step()", "python")
    assert [line for line in map(str.strip, quoted.splitlines()) if line and line not in example] == []
