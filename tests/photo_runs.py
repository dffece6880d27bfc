"""A run on photos in a folder, made by hand: no training, and a sharp photo for every image."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from papi.config import CandidatesConfig, RunConfig, to_dict
from papi.runs.folder import RunFolder
from papi.runs.schema import Arrays, EpochRow, Record, Sets, Summary

CLASSES = ("rose", "tulip", "violet")


def write_photo_run(path: Path, photos: int = 60, classes: tuple[str, ...] = CLASSES) -> RunFolder:
    """A finished run in `path` on photos of 480 x 300 pixels in `photos` beside it. The truth is not known."""
    random = np.random.default_rng(0)
    home = path.parent / "photos"
    home.mkdir(parents=True, exist_ok=True)
    candidates = random.random((photos, len(classes))) < 0.6
    candidates[:, 0] |= ~candidates.any(1)
    names = [f"bed 1/flower #{i:03}.jpg" for i in range(photos)]
    (home / "bed 1").mkdir(exist_ok=True)
    for i, name in enumerate(names):
        Image.new("RGB", (480, 300), (i * 4 % 256, 90, 200 - i * 3 % 200)).save(home / name)
    with (home / "metadata.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = [(name, "|".join(np.array(classes)[row])) for name, row in zip(names, candidates, strict=True)]
        csv.writer(stream).writerows([("file_name", "candidates"), *rows])
    config = to_dict(RunConfig(data=str(home), candidates=CandidatesConfig(), epochs=1, data_size=32))
    folder = RunFolder(path)
    path.mkdir(exist_ok=True)
    folder.write_record(Record(config=config, identity=config, classes=classes))
    folder.write_sets(Sets(candidates=candidates, file_names=np.array(names)))
    folder.write_rows([EpochRow(epoch=0, loss=1.0, seconds=1.0, mean_confidence=0.7)])
    confidence = random.random(candidates.shape) * candidates
    folder.write_arrays(Arrays(confidence=(confidence / confidence.sum(1, keepdims=True)).astype(np.float32)))
    folder.write_summary(Summary(method="papi", dataset="photos", seconds=1.0, epochs=1, training_images=photos))
    return folder
