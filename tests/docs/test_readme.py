"""The programs and commands of the README run, one after another."""

import csv
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pages import ROOT, block_with, blocks, commands, section
from terminal_lines import follow

README = (ROOT / "README.md").read_text()
COLOURS = {"rose": (200, 40, 60), "tulip": (230, 200, 40), "violet": (110, 60, 200)}


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """A folder with what a reader has: images, a table of candidates, new images, decisions. It trains briefly."""
    place = tmp_path / "home"
    draw = random.Random(0)
    rows = []
    for number in range(60):
        flower, other = draw.sample(sorted(COLOURS), 2)
        folder = place / ("new" if number >= 54 else "flowers")
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 12), COLOURS[flower]).save(folder / f"{number:03}.png")
        if number < 54:
            rows.append([f"{number:03}.png", f"{flower}|{other}"])
    with (place / "labels.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["file_name", "candidates"], *rows])
    (place / "decisions.csv").write_text(f"index,file,label\n0,,{rows[0][1].split('|')[0]}\n")
    (place / "papi.toml").write_text("epochs = 2\nthreads = 1\n")
    return place


def test_the_command_line_and_the_model_it_leaves(flowers: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = section(README, "The command line")
    table = block_with(text, "file_name")
    assert table.splitlines()[0] == (flowers / "labels.csv").read_text().splitlines()[0]
    follow(commands("".join(f"```console\n{code}```\n" for code in blocks(text, "console"))), flowers)
    assert (flowers / "runs" / "flowers" / "report.html").exists()
    with (flowers / "runs" / "flowers-fixed" / "labels.csv").open(newline="") as labels:
        assert len(list(csv.DictReader(labels))) == 54
    with (flowers / "predictions.csv").open(newline="") as predictions:
        assert {row["label"] for row in csv.DictReader(predictions)} <= set(COLOURS)
    monkeypatch.chdir(flowers)
    exec(block_with(README, "papi.load", "python"), {"images": np.zeros((2, 12, 12, 3), np.uint8)})


def test_scikit_learn() -> None:
    draws = np.random.default_rng(0)
    X = draws.normal(size=(40, 4))
    names: dict[str, object] = {"X": X, "y": [{"low", "high"} if row[0] > 0 else {"low"} for row in X], "X_new": X[:3]}
    exec(block_with(README, "PartialLabelClassifier", "python"), names)
    assert len(names["classifier"].labels_) == 40  # type: ignore[attr-defined]


def test_pytorch() -> None:
    torch.manual_seed(0)
    candidates = torch.rand(8, 10) < 0.5
    candidates[:, 0] = True
    views = torch.randn(8, 3, 32, 32)
    names = {"candidates": candidates, "epoch": 0, "epochs": 1, "loader": [(torch.arange(8), views, views)]}
    exec(block_with(README, "PaPiConfig", "python"), names)
    assert all(weight.grad is not None for weight in names["method"].network.encoder.parameters())  # type: ignore[attr-defined]


def test_every_method_has_a_link_to_its_page() -> None:
    from papi.methods import METHODS

    assert {name for name in METHODS if f"(docs/methods/{name}.md)" not in README} == set()


def test_every_command_is_shown() -> None:
    from papi.cli import app

    listed = {line.split()[1] for line in section(README, "All commands").splitlines() if line.startswith("papi ")}
    assert listed == {name for name in app if not name.startswith("-")}
