"""Train a classifier on a folder of images with ambiguous labels, and use it: `python examples/own_images.py`.

This script generates the folder and the table; replace them with yours. docs/own-data.md and docs/use-the-model.md show
the same on the command line.
"""

import csv
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw

import papi
from papi.config import CandidatesConfig, RunConfig
from papi.runs.folder import RunFolder
from papi.runs.labels import resolve
from papi.train import train
from papi.training.engine import EpochEnded

COLOURS = {"rose": (200, 40, 60), "tulip": (230, 200, 40), "violet": (110, 60, 200)}


def make_images(folder: Path, count: int) -> Path:
    """Draw flowers into a folder, and write a table with two candidate labels per image."""
    folder.mkdir(parents=True)
    draw = random.Random(0)
    rows = []
    for number in range(count):
        flower, other = draw.sample(list(COLOURS), 2)
        image = Image.new("RGB", (32, 32), (60, 120, 60))
        ImageDraw.Draw(image).ellipse((8, 8, 24, 24), fill=COLOURS[flower])
        image.save(folder / f"{number:03}.png")
        rows.append((f"{number:03}.png", "|".join(sorted((flower, other)))))
    table = folder.with_suffix(".csv")
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("file_name", "candidates"), *rows])
    return table


def main(place: Path, images: int = 240, epochs: int = 4) -> None:
    table = make_images(place / "flowers", images)
    config = RunConfig(data=str(place / "flowers"), candidates=CandidatesConfig(file=table), epochs=epochs)
    for event in train(config, place / "run"):
        if isinstance(event, EpochEnded):
            print(f"epoch {event.row.epoch + 1}: confidence {event.row.mean_confidence:.0%}")

    folder = RunFolder(place / "run")
    sets, arrays = folder.read_sets(), folder.read_arrays()
    found = resolve(sets.candidates, arrays.confidence, arrays.second_opinion)
    model = papi.load(place / "run")
    print("Worth a second look:")
    for image in found.rank.argsort()[:3]:
        name = model.class_names[found.label[image]]
        print(f"  {sets.file_names[image]}: {name}, {found.confidence[image]:.0%} sure")

    print("Predictions for image files:")
    files = sorted((place / "flowers").iterdir())[:3]
    for file, name in zip(files, model.predict(files), strict=True):
        print(f"  {file.name}: {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("own_images"))
