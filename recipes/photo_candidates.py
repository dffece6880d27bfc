"""Generate a table of candidate labels for photos that are sorted by class.

    python -m recipes.photo_candidates PHOTOS TABLE.csv --flip-rate 0.5 --seed 0
    python -m recipes.photo_candidates PHOTOS TABLE.csv --kind instance-dependent --seed 0

PHOTOS contains one folder per class, or several parts of this form, of which `test` is the test set. Pass the table to
`papi train --data PHOTOS --candidates.file TABLE.csv`. It also contains the true labels, which are used only to measure
accuracy. Instance-dependent candidates come from the predictions of a small network that is trained on the true labels
at 64 pixels.
"""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Literal, NamedTuple

import cyclopts
import numpy as np

from papi.config import CandidatesConfig, RunConfig
from papi.data import candidates as generators
from papi.errors import UserError
from papi.files.durable import replacing
from papi.setup.data import load_dataset
from papi.training.annotator import annotator_logits

TEST = "test"
ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
INSTANCE_RATE = CandidatesConfig().instance_rate


class Photo(NamedTuple):
    """One photo of a folder."""

    name: str  # its path inside the folder
    label: str
    test: bool


def photos_in(folder: Path) -> list[Photo]:
    """All photos below a folder, sorted by name: PART/CLASS/FILE or CLASS/FILE."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    found = [path.relative_to(folder) for path in files]
    odd = [path for path in found if len(path.parts) not in (2, 3)]
    if odd or not found:
        what = f"{odd[0]} is not in such a folder" if odd else "it has no photos"
        raise UserError(f"{folder} must contain CLASS/PHOTO or PART/CLASS/PHOTO, but {what}.")
    return [Photo(path.as_posix(), path.parts[-2], len(path.parts) == 3 and path.parts[0] == TEST) for path in found]


def write_table(file: Path, photos: Sequence[Photo], sets: np.ndarray, classes: Sequence[str]) -> None:
    """Write the table of all photos; `sets` `(N, K) bool` are the candidate sets of the training photos, in order."""
    rows = iter(sets)
    with replacing(file) as stream:
        lines = [["file_name", "candidates", "label", "split"]]
        for photo in photos:
            names = [] if photo.test else [name for name, given in zip(classes, next(rows), strict=True) if given]
            lines.append([photo.name, "|".join(names), photo.label, "test" if photo.test else "train"])
        text = _csv(lines)
        stream.write(text.encode())


def _csv(lines: Sequence[Sequence[str]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def main(
    photos: Path,
    table: Path,
    /,
    *,
    kind: Literal["uniform", "instance-dependent"] = "uniform",
    flip_rate: float = 0.5,
    seed: int = 0,
) -> None:
    """Generate candidate labels from the class folders of photos, and write them to a table.

    Parameters
    ----------
    photos
        The folder of photos.
    table
        The csv file to write.
    kind
        How candidates are generated.
    flip_rate
        uniform: probability that a wrong label is a candidate.
    seed
        Seed of the random draws and of the annotator's training.
    """
    listed = photos_in(photos)
    classes = sorted({photo.label for photo in listed})
    labels = np.array([classes.index(photo.label) for photo in listed if not photo.test])
    sets = generators.uniform(labels, len(classes), flip_rate, seed)
    write_table(table, listed, sets, classes)
    if kind == "instance-dependent":
        # The first table specifies the training photos and their labels.
        config = RunConfig(data=str(photos), data_size=64, candidates=CandidatesConfig(file=table))
        dataset = load_dataset(config)
        logits = annotator_logits(dataset, seed=seed)
        assert logits is not None, "nothing interrupts it"
        assert dataset.file_names is not None
        order = {name: row for row, name in enumerate(dataset.file_names)}
        logits = logits[[order[photo.name] for photo in listed if not photo.test]]
        chances = generators.instance_probabilities(logits, labels, "released", INSTANCE_RATE)
        sets = generators.instance_dependent(labels, chances, seed)
        write_table(table, listed, sets, classes)
    print(f"{table}: {len(labels):,} photos with {sets.sum(1).mean():.2f} candidates on average")


if __name__ == "__main__":
    cyclopts.run(main)
