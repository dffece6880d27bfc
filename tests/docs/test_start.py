"""The page "Start here", followed to the letter, with fewer images and epochs."""

import csv
import random
import re
from pathlib import Path

import pytest
from PIL import Image

from pages import DOCS, block_with, commands, section
from terminal_lines import follow

PAGE = (DOCS / "start.md").read_text()
STEPS = ("Train", "Look at the result", "Use the model", "Your own images")


def test_from_the_first_command_to_your_own_images(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    (home / "flowers").mkdir(parents=True)
    (home / "papi.toml").write_text("epochs = 1\nlimit = 50\nthreads = 1\n")
    draw = random.Random(0)
    rows = []
    for number in range(50):
        Image.new("RGB", (12, 12), (number, 0, 0)).save(home / "flowers" / f"{number:03}.png")
        rows.append([f"{number:03}.png", "|".join(draw.sample(["rose", "tulip", "violet"], 2))])
    with (home / "labels.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["file_name", "candidates"], *rows])

    typed = [line.replace(" --open", "") for step in STEPS for line in commands(section(PAGE, step))]
    follow(typed, home)
    assert (home / "runs" / "first" / "report.html").exists()
    assert (home / "runs" / "flowers" / "labels.csv").exists()
    monkeypatch.chdir(home)
    exec(block_with(section(PAGE, "Use the model"), "papi.load", "python"), {})
    assert len(re.findall(r"'[^']+'", capsys.readouterr().out)) == 5
