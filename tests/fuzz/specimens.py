"""What the fuzzer spoils: a run on features, a run on images, their data in every format, and a folder to keep out of.

Everything is made once. Commands stand in a copy of `features` or `images` and name files relative to it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

CANARY = "canary-5f2c9d"
CLASSES = ("ant", "bee", "cat")
TRAP = """from pathlib import Path

Path(__file__).with_name("imported").write_text(__name__)
"""

Run = Callable[..., int]
"""Runs a command in a folder: `run(folder, "train", …)` gives the exit code."""


def make_specimens(place: Path, run: Run) -> None:
    """Write `features`, `images` and `outside` below a folder."""
    make_outside(place / "outside")
    _make_features(place / "features")
    _make_images(place / "images")
    for name in ("features", "images"):
        folder = place / name
        code = run(folder, *TRAINING[name])
        assert code == 0, f"the specimen {name} could not be trained"
        _write_decisions(folder)
        _stop_halfway(folder)


_TRAIN = ("--epochs", "2", "--batch-size", "8", "--checkpoint.every", "1", "--threads", "1", "--device", "cpu")
TRAINING = {
    "features": ("train", "--data", "table.npz", "--out", "run", *_TRAIN),
    "images": ("train", "--data", "photos", "--candidates.file", "labels.csv", "--out", "run", *_TRAIN),
}
"""The commands that made the runs; given again, they continue what is unfinished."""


def make_outside(folder: Path) -> None:
    """A folder that no command is told of. Secrets in it bear a mark, and importing from it leaves a trace."""
    folder.mkdir()
    (folder / "private.txt").write_text(f"{CANARY}\n" * 3)
    (folder / "public.txt").write_text("index,file,label\n0,,ant\n")
    (folder / "home").mkdir()
    (folder / "home" / ".bashrc").write_text(f"# {CANARY}\n")
    for name in ("trap.py", "trap_network.py"):
        (folder / name).write_text(TRAP)


def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features `(24, 4)`, true labels and candidate sets `(24, 3)`."""
    random = np.random.default_rng(0)
    labels = np.arange(24) % 3
    features = random.normal(size=(24, 4)).astype(np.float32)
    features[np.arange(24), labels] += 3
    return features, labels, (random.random((24, 3)) < 0.4) | (np.arange(3) == labels[:, None])


def _make_features(folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet
    from scipy.io import savemat

    folder.mkdir()
    features, labels, sets = _table()
    names = np.array(CLASSES)
    np.savez(folder / "table.npz", features=features, labels=labels, candidates=sets, class_names=names)
    np.save(folder / "new.npy", features[:6])
    np.savez(folder / "new.npz", features=features[:6])
    savemat(folder / "table.mat", {"data": features, "partial_target": sets.T * 1, "target": np.eye(3)[labels].T})
    listed = ["|".join(np.array(CLASSES)[row]) for row in sets]
    rows = [[*map(str, row), said, CLASSES[k]] for row, said, k in zip(features, listed, labels, strict=True)]
    head = ["a", "b", "c", "d", "candidates", "label"]
    (folder / "table.csv").write_text("".join(",".join(row) + "\n" for row in [head, *rows]))
    (folder / "new.csv").write_text("a,b,c,d\n1,2,3,4\n4,3,2,1\n")
    columns = {name: features[:, k] for k, name in enumerate("abcd")}
    parquet.write_table(pyarrow.table({**columns, "candidates": listed}), folder / "table.parquet")
    (folder / "matrix.csv").write_text("1,0.5,0.1\n0.5,1,0.1\n0.1,0.1,1\n")
    np.save(folder / "matrix.npy", np.full((3, 3), 0.5) + np.eye(3) / 2)
    (folder / "groups.csv").write_text("class,group\nant,insect\nbee,insect\ncat,mammal\n")


def _make_images(folder: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    random = np.random.default_rng(0)
    _, labels, sets = _table()
    (folder / "photos").mkdir(parents=True)
    files = [f"{k}.png" for k in range(24)]
    for k, name in enumerate(files):
        pixels = random.integers(0, 80, (8, 8, 3)).astype(np.uint8)
        pixels[2 * labels[k]] += 150
        Image.fromarray(pixels).save(folder / "photos" / name)
        if k < 12:
            (folder / "sorted" / CLASSES[labels[k]]).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(folder / "sorted" / CLASSES[labels[k]] / name)
    shutil.copytree(folder / "photos", folder / "new", ignore=lambda _, names: names[:18])
    Image.open(folder / "photos" / "0.png").save(folder / "one.jpg")
    listed = [[CLASSES[k] for k in np.flatnonzero(row)] for row in sets]
    table = [(name, row, CLASSES[k]) for name, row, k in zip(files, listed, labels, strict=True)]
    lines = [f"{name},{'|'.join(row)},{label}\n" for name, row, label in table]
    (folder / "labels.csv").write_text("file_name,candidates,label\n" + "".join(lines))
    objects = [{"file_name": name, "candidates": row, "label": label} for name, row, label in table]
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in objects))
    parquet.write_table(pyarrow.table({"file_name": files, "candidates": listed}), folder / "labels.parquet")
    np.savez(folder / "labels.npz", candidates=sets, file_names=np.array(files), class_names=np.array(CLASSES))
    votes = [f"{name},{who},{row[0]}\n" for name, row, _ in table for who in ("ann", "bob")]
    (folder / "votes.csv").write_text("file_name,annotator,label\n" + "".join(votes))


def _write_decisions(folder: Path) -> None:
    (folder / "decisions.csv").write_text("index,file,label\n0,,ant\n3,,bee\n")


def _stop_halfway(folder: Path) -> None:
    """Beside the finished `run`, `half`: as it was one checkpoint earlier."""
    shutil.copytree(folder / "run", folder / "half")
    for name in ("summary.json", "model.safetensors", "arrays.npz", "checkpoint.pt"):
        (folder / "half" / name).unlink()
    (folder / "half" / "checkpoint.previous.pt").rename(folder / "half" / "checkpoint.pt")
