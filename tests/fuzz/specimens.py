"""What the fuzzer spoils: runs on features, images and photos, their data in every format, and a folder to keep out of.

Everything is made once. Commands stand in a copy of `features`, `images`, … and name files relative to it.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

CANARY = "canary-5f2c9d"
CLASSES = ("ant", "bee", "cat")
TRAP = """from pathlib import Path

Path(__file__).with_name("imported").write_text(__name__)
"""

Run = Callable[..., str]
"""Runs a command in a folder: `run(folder, "train", …)` gives what it said. It must succeed."""


def make_specimens(place: Path, run: Run) -> None:
    """Write `features`, `images`, `tools`, `ready`, `frozen` and `outside` below a folder."""
    make_outside(place / "outside")
    _make_features(place / "features")
    _make_images(place / "images")
    for name in ("features", "images"):
        folder = place / name
        run(folder, *TRAINING[name])
        shutil.rmtree(folder / "cache", ignore_errors=True)
        _write_decisions(folder)
        _stop_halfway(folder)
    _search(place / "features", run)
    _make_tools(place / "tools", place / "images")
    _make_ready(place / "ready", place / "images")
    _make_frozen(place, run)


_TRAIN = ("--epochs", "2", "--batch-size", "8", "--checkpoint.every", "1", "--threads", "1", "--device", "cpu")
TRAINING = {
    "features": ("train", "--data", "table.npz", "--out", "run", *_TRAIN),
    "images": ("train", "--data", "photos", "--candidates.file", "labels.csv", "--out", "run", *_TRAIN),
}
"""The commands that made the runs; given again, they continue what is unfinished."""
FROZEN = (*TRAINING["images"], "--network", "tiny_encoder:encoder")
TUNING = ("tune", "proden", "--data", "table.npz", "--budget", "2", "--out", "trials", *_TRAIN[:4])


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


def _make_tools(folder: Path, images: Path) -> None:
    """Exports of annotation tools, and tables with more than candidates in them."""
    import pyarrow
    from openpyxl import Workbook
    from pyarrow import parquet

    import tool_files

    folder.mkdir()
    shutil.copytree(images / "photos", folder / "photos")
    rows = [line.split(",") for line in (images / "labels.csv").read_text().splitlines()]
    said = {name: {"ann": row.split("|"), "bob": [label]} for name, row, label in rows[1:]}
    for tool in tool_files.WRITERS:
        tool_files.write(folder, tool, said)
    (folder / "labels.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    book = Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(folder / "labels.xlsx")
    pictures = [{"bytes": (folder / "photos" / name).read_bytes(), "path": name} for name in said]
    inside = pyarrow.table({"image": pictures, "candidates": [by["ann"] for by in said.values()]})
    parquet.write_table(inside, folder / "pictures.parquet")
    for k, part in enumerate((inside.slice(0, 12), inside.slice(12))):
        (folder / "shards").mkdir(exist_ok=True)
        parquet.write_table(part, folder / "shards" / f"train-{k}.parquet")
    _write_rows(folder / "excluded.csv", "file_name,candidates,excluded", said, ("ant|bee|cat,", ",ant", "bee|cat,ant"))
    _write_rows(folder / "weights.csv", "file_name,candidates", said, ("ant:0.7|bee:0.3", "cat:2|ant:1", "bee"))
    _write_rows(folder / "coarse.csv", "file_name,candidates", said, ("insect", "cat|ant", "mammal|bee"))
    (folder / "tree.csv").write_text("label,parent\nant,insect\nbee,insect\ncat,mammal\ninsect,\nmammal,\n")
    (folder / "tree.json").write_text(json.dumps({"insect": ["ant", "bee"], "mammal": {"cat": {}}}))


def _write_rows(file: Path, head: str, names: Iterable[str], rows: Sequence[str]) -> None:
    lines = [f"{name},{rows[k % len(rows)]}" for k, name in enumerate(names)]
    file.write_text("\n".join([head, *lines, ""]))


def _make_ready(folder: Path, images: Path) -> None:
    """A folder that was handed over with its options, and one below for which they are yet to be found."""
    for place in (folder, folder / "little"):
        shutil.copytree(images / "photos", place / "photos")
        shutil.copy(images / "labels.csv", place / "labels.csv")
    (folder / "papi.toml").write_text(
        'data = "photos"\ncandidates.file = "labels.csv"\nmethod = "proden"\nepochs = 1\nbatch-size = 8\n'
        'threads = 1\ndevice = "cpu"\noptim.lr = 0.01\nskip-bad = true\n'
    )
    shutil.copy(folder / "papi.toml", folder / "options.toml")


def _make_frozen(place: Path, run: Run) -> None:
    """A run with a frozen encoder, and what the cache has of its photos, which it knows by where they are."""
    folder = place / "case"
    shutil.copytree(place / "images", folder, ignore=shutil.ignore_patterns("run", "half", "sorted"))
    run(folder, *("whole" if word == "run" else word for word in FROZEN), "--tune", "all")
    run(folder, *FROZEN)
    shutil.rmtree(folder / "whole")
    folder.rename(place / "frozen")


def _search(folder: Path, run: Run) -> None:
    """The trials of `papi tune`, trained here, where torch is loaded already."""
    for line in run(folder, *TUNING, "--dry-run").splitlines():
        run(folder, *shlex.split(line)[1:])
    shutil.rmtree(folder / "cache", ignore_errors=True)


def _write_decisions(folder: Path) -> None:
    (folder / "decisions.csv").write_text("index,file,label\n0,,ant\n3,,bee\n")
    (folder / "answers.csv").write_text(
        "index,file,label,answer,note\n0,,ant,label,sure\n1,,ant|bee,several,\n2,,,none,\n3,,,bad,dark\n4,,,skip,\n"
    )


def _stop_halfway(folder: Path) -> None:
    """Beside the finished `run`, `half`: as it was one checkpoint earlier."""
    shutil.copytree(folder / "run", folder / "half")
    for name in ("summary.json", "model.safetensors", "arrays.npz", "checkpoint.pt"):
        (folder / "half" / name).unlink()
    (folder / "half" / "checkpoint.previous.pt").rename(folder / "half" / "checkpoint.pt")
