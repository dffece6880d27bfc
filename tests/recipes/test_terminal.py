"""Pictures of a terminal: what a person would see, as text that fetches nothing."""

import sys
from pathlib import Path

import pytest

from recipes import terminal

BAR = "from rich.progress import track\nfor _ in track(range(3), 'working'): pass\nprint('done')"


def test_a_real_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.main(tmp_path / "it.svg", [sys.executable, "-c", "import os; print(os.get_terminal_size().columns)"])
    drawn = (tmp_path / "it.svg").read_text()
    assert ">100<" in drawn
    assert "http" not in drawn.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")


def test_of_a_progress_bar_its_end_is_left() -> None:
    text = terminal.screen(terminal.printed([sys.executable, "-c", BAR]))
    assert text.count("working") == 1
    assert "100%" in text
    assert text.endswith("done")


def test_a_command_that_fails() -> None:
    with pytest.raises(SystemExit, match="ended with 3"):
        terminal.printed([sys.executable, "-c", "raise SystemExit(3)"])
