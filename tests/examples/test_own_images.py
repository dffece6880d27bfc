"""The example with one's own images: it trains, names doubtful images, and classifies files."""

import re
from pathlib import Path

import pytest

from pages import ROOT


def test_from_images_to_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    import own_images

    own_images.main(tmp_path, images=48, epochs=2)
    said = capsys.readouterr().out
    assert said.count("epoch ") == 2
    listed = re.findall(r"^  (\d+\.png): (\w+)", said, re.MULTILINE)
    assert len(listed) == 6
    assert {name for _, name in listed} <= {"rose", "tulip", "violet"}
