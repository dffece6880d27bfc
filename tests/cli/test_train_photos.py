"""Photos larger than 96 pixels, trained from scratch: they keep their proportions, and new ones are prepared alike."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

import papi
from command import papi_exit_code
from papi.data.images.decode import decode_square
from papi.networks.preparation import Preparation
from papi.runs.folder import RunFolder

SIDE = 100


def write_photos(folder: Path, count: int) -> None:
    for k in range(count):
        shade = np.random.default_rng(k).integers(0, 128, (4, 6, 3), np.uint8) + np.uint8(127 * (k % 2))
        place = folder / ("light" if k % 2 else "dark")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shade).resize((150 + k, 120), Image.Resampling.BICUBIC).save(place / f"{k:02}.png")


def test_from_a_folder_of_photos_to_answers(tmp_path: Path, cache: Path) -> None:
    photos, run, out = tmp_path / "photos", tmp_path / "run", tmp_path / "answers.csv"
    write_photos(photos, 24)
    command = ("train", "--data", str(photos), "--data.size", str(SIDE), "--epochs", "1", "--batch-size", "8")
    assert papi_exit_code(*command, "--out", str(run)) == 0
    assert len(list((cache / "photos").iterdir())) == 1
    model = papi.load(run)
    assert model.preparation == Preparation(SIDE)
    arrays = RunFolder(run).read_kept()[1]
    assert papi_exit_code("predict", str(run), str(photos), "--out", str(out)) == 0
    with out.open() as file:
        answers = {row["file"]: float(row["probability"]) for row in csv.DictReader(file)}
    files = sorted(photos.rglob("*.png"))
    assert sorted(answers) == [str(file) for file in files]
    squares = np.stack([decode_square(file, Preparation(SIDE)) for file in files])
    found = model.predict_proba(squares)
    np.testing.assert_allclose([answers[str(file)] for file in files], found.max(1), atol=2e-6)
    # What the run says about its test photos is among them: they were prepared in the same way.
    assert arrays.test_probabilities is not None
    for row in arrays.test_probabilities:
        assert np.abs(found - row).max(1).min() < 1e-4
    assert papi_exit_code("evaluate", str(run)) == 0
