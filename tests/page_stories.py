"""What a reader of a page has before typing its commands, what its programs use, and what is there afterwards.

A page that is not in the table is followed in a folder with nothing but a papi.toml that makes training short.
"""

import csv
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from sklearn.model_selection import GridSearchCV

import papi
from command import papi_exit_code
from pages import DOCS, ROOT, block_with
from papi.data.own.annotations import read_annotations
from papi.data.own.entries import Rules
from papi.runs.folder import RunFolder
from published_files import write_cifar10, write_fashion, write_partial_mat
from torchvision_operators import require

LIMIT = 50
SHORT = f"epochs = 1\nlimit = {LIMIT}\nthreads = 1\n"
COLOURS = {"rose": (200, 40, 60), "tulip": (230, 200, 40), "violet": (110, 60, 200)}
Names = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """All functions run in the reader's folder."""

    has: tuple[Callable[[], object], ...] = ()
    names: Callable[[], Names] = dict
    """Names that the Python blocks of the page use and do not make."""
    words: dict[str, str] = field(default_factory=dict)
    """What a reader puts in place of words in capital letters."""
    ends: Callable[[Names], None] = lambda names: None
    """What must be so in the end."""


def photos(folder: str, table: str) -> Callable[[], None]:
    """Small photos of flowers, and a table of their candidate labels."""

    def make() -> None:
        draw = random.Random(0)
        Path(folder).mkdir()
        rows = []
        for number in range(LIMIT):
            flower, other = draw.sample(sorted(COLOURS), 2)
            Image.new("RGB", (12, 12), COLOURS[flower]).save(Path(folder, f"{number:03}.png"))
            rows.append([f"{number:03}.png", f"{flower}|{other}"])
        with Path(table).open("w", newline="") as file:
            csv.writer(file).writerows([["file_name", "candidates"], *rows])

    return make


def new_photo(file: str) -> Callable[[], None]:
    """A photo without labels, in a folder of its own."""

    def make() -> None:
        Path(file).parent.mkdir()
        Image.new("RGB", (12, 12), COLOURS["rose"]).save(file)

    return make


def an_encoder() -> None:
    """Random weights in the form in which transformers saves DINOv2."""
    require("transformers")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "mlp_ratio": 1}
    transformers.Dinov2Model(transformers.Dinov2Config(**size)).save_pretrained("models/dinov2-small")
    preparation = {"size": {"shortest_edge": 28}, "image_mean": [0.5] * 3, "image_std": [0.2] * 3, "resample": 2}
    Path("models/dinov2-small/preprocessor_config.json").write_text(json.dumps(preparation))


def trained(options: str) -> Callable[[], None]:
    """A run that the page takes for granted."""

    def make() -> None:
        assert papi_exit_code("train", *options.split()) == 0, options

    return make


def decisions() -> None:
    """A decision on the first image, as the report saves it."""
    first = Path("labels.csv").read_text().splitlines()[1].partition(",")[2]
    Path("decisions.csv").write_text(f"index,file,label\n0,,{first.split('|')[0]}\n")


def a_clone() -> None:
    """The folders of the repository that commands name."""
    for name in ("examples", "recipes"):
        Path(name).symlink_to(ROOT / name)
    Path("docs/pictures").mkdir(parents=True)


def tables() -> None:
    """Small tables in the form of the published ones."""
    for name, columns, classes in (("lost", 108, 16), ("MSRCv2", 48, 23), ("BirdSong", 38, 13)):
        Path("data").mkdir(exist_ok=True)
        write_partial_mat(Path("data", f"{name}.mat"), 200, columns, classes)


def kept_rows() -> None:
    """A copy of the rows behind the results pages, and no runs."""
    Path("runs").mkdir()
    shutil.copytree(DOCS / "results", "rows", ignore=lambda _, names: {each for each in names if ".jsonl" not in each})


def a_method() -> None:
    """A method of the reader's own."""
    Path("my_package").mkdir()
    Path("my_package/method.py").write_text("from papi.methods.cc import CC as Mine\n")


def readme_names() -> Names:
    draws = np.random.default_rng(0)
    X = draws.normal(size=(40, 4))
    candidates = torch.rand(8, 10) < 0.5
    candidates[:, 0] = True
    views = torch.randn(8, 3, 32, 32)
    return {
        "X": X,
        "y": [{"low", "high"} if row[0] > 0 else {"low"} for row in X],
        "X_new": X[:3],
        "candidates": candidates,
        "epoch": 0,
        "epochs": 1,
        "loader": [(torch.arange(8), views, views)],
        "images": np.zeros((2, 12, 12, 3), np.uint8),
    }


def readme_ends(names: Names) -> None:
    assert Path("runs/flowers/report.html").exists()
    assert len(rows_of("runs/flowers-fixed/labels.csv")) == LIMIT
    assert {row["label"] for row in rows_of("predictions.csv")} <= set(COLOURS)
    assert len(names["classifier"].labels_) == 40
    assert all(weight.grad is not None for weight in names["method"].network.encoder.parameters())


def rows_of(file: str) -> list[dict[str, str]]:
    with Path(file).open(newline="", encoding="utf-8") as table:
        return list(csv.DictReader(table))


def contributing_ends(names: Names) -> None:
    runs = [RunFolder(folder).read_run_config() for folder in Path("runs").iterdir()]
    assert "yours:Yours" in {run.method for run in runs}
    assert "yours:Yours" in {run.network for run in runs}


def start_ends(names: Names) -> None:
    assert Path("runs/first/report.html").exists()
    assert len(names["model"].predict(names["images"])) == len(names["images"])
    assert {row["label"] for row in rows_of("runs/flowers/labels.csv")} <= set(COLOURS)


def own_data_ends(names: Names) -> None:
    given = {row["file_name"]: row["candidates"].split("|") for row in rows_of("labels.csv")}
    resolved = rows_of("runs/flowers/labels.csv")
    assert resolved
    for row in resolved:
        assert row["label"] in given[row["file"]]
        assert 0.33 < float(row["confidence"]) <= 1
    assert Path("runs/flowers/report.html").exists()


def annotation_tools_end(names: Names) -> None:
    for task in json.loads(Path("runs/label-studio/label-studio.json").read_text()):
        assert task["predictions"][0]["result"][0]["value"]["choices"][0] in COLOURS
    for file in ("cvat/cvat.xml", "coco/coco.json", "via/via.csv"):
        assert read_annotations(Path("runs", file), Rules()).candidates.sum(1).tolist() == [1] * LIMIT
    assert len(rows_of("runs/crowd/crowd.csv")) == LIMIT


def decisions_of_the_page() -> None:
    Path("decisions.csv").write_text(block_with((DOCS / "use-the-model.md").read_text(), "index,file,label"))


def use_the_model_ends(names: Names) -> None:
    made = [
        "runs/flowers-fixed/labels.csv", "flowers.safetensors", "runs/flowers/exported/model.torchscript.pt",
        "hub/README.md", "hub/model.safetensors",
    ]  # fmt: skip
    assert [name for name in made if not Path(name).exists()] == []
    assert len(rows_of("predictions.csv")) == LIMIT


def estimator_ends(names: Names) -> None:
    assert isinstance(names["clf"], papi.PartialLabelClassifier)
    assert isinstance(names["search"], GridSearchCV)
    assert len(names["clf"].labels_) == len(names["clf"].confidence_) == 200


def own_loop_names() -> Names:
    """What the program in examples/ has before its loop."""
    import own_loop

    digits = torch.rand(64, 1, 8, 8)
    return vars(own_loop) | {
        "candidates": torch.ones(64, 10, dtype=torch.bool), "epochs": 1, "loader": [(torch.arange(64), digits)],
    }  # fmt: skip


def tune_names() -> Names:
    from papi.methods.config import MethodConfig

    return {"dataclass": dataclass, "Literal": Literal, "MethodConfig": MethodConfig}


FLOWERS = "--data flowers --candidates.file labels.csv --out runs/flowers"
DIGITS = "--data digits --data.holdout 0.1"
STORIES = {
    "README.md": Story(
        has=(
            photos("flowers", "labels.csv"),
            decisions,
            new_photo("new/1.png"),
            photos("mine", "mine/metadata.csv"),
            trained(f"{DIGITS} --out runs/mine"),
        ),
        names=readme_names,
        words={"FOLDER": "mine", "RUN": "runs/mine", "IMAGES": "new", "METHOD": "cc", "NAME": "uniform"},
        ends=readme_ends,
    ),
    "CONTRIBUTING.md": Story(has=(a_clone,), ends=contributing_ends),
    "docs/annotation-tools.md": Story(ends=annotation_tools_end),
    "docs/datasets.md": Story(has=(lambda: write_cifar10(Path("data/cifar10")),)),
    "docs/estimator.md": Story(ends=estimator_ends),
    "docs/experiments.md": Story(
        has=(a_clone, lambda: write_cifar10(Path("data/cifar10")), kept_rows, a_method),
        words={"FOLDER": "runs", "REVISION": "0123abc"},
    ),
    "docs/many-processes.md": Story(has=(lambda: write_cifar10(Path("data/cifar10")),)),
    "docs/methods/dirk.md": Story(has=(a_clone, lambda: write_fashion(Path("data/fashion-mnist"), 200))),
    "docs/methods/neighbours.md": Story(has=(tables,)),
    "docs/networks.md": Story(
        has=(a_clone, photos("photos", "labels.csv"), new_photo("new_photos/cat.jpg"), trained("--out runs/photos")),
        names=lambda: {"papi": papi},
    ),
    "docs/own-data.md": Story(ends=own_data_ends),
    "docs/own-loop.md": Story(has=(a_clone,), names=own_loop_names),
    "docs/photos.md": Story(has=(photos("photos", "labels.csv"), new_photo("new_photos/cat.jpg"), an_encoder)),
    "docs/reliability.md": Story(has=(trained(f"{DIGITS} --out runs/mine"),)),
    "docs/report.md": Story(has=tuple(trained(f"{DIGITS} --out runs/{name}") for name in ("mine", "a", "b", "c"))),
    "docs/results/settings.md": Story(has=(a_clone, lambda: write_fashion(Path("data/fashion-mnist"), 200))),
    "docs/start.md": Story(has=(photos("flowers", "labels.csv"),), ends=start_ends),
    "docs/tune.md": Story(
        has=(photos("my_images", "my_images/metadata.csv"), lambda: write_partial_mat(Path("my_table.mat")), tables),
        names=tune_names,
        words={"POOL": "pool"},
    ),
    "docs/tutorials/doubtful-cases.md": Story(has=(trained(f"{DIGITS} --out runs/clothes"),)),
    "docs/use-the-model.md": Story(
        has=(photos("flowers", "labels.csv"), trained(FLOWERS), decisions_of_the_page),
        ends=use_the_model_ends,
    ),
}
