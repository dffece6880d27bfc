"""The effect of the set prior on candidate sets from CIFAR-10H, human votes on the CIFAR-10 test images.

    python -m recipes.human_votes cifar10h.npz data FOLDER --seeds 3

`cifar10h.npz` holds `counts` (10,000 x 10), the votes for each published test image of CIFAR-10 (Peterson et al., ICCV
2019); `data` contains CIFAR-10 as published. Every class with a vote is a candidate. The default form of PaPi trains on
these images with and without the set prior, and is tested on 10,000 published training images. Results are stored in
docs/results/human-answers/cifar10h.jsonl.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from papi.data.known.sources import load_known
from papi.data.own.reading import Reading
from papi.runs.folder import RunFolder

ROWS = Path(__file__).parents[1] / "docs" / "results" / "human-answers" / "cifar10h.jsonl"
TESTS = 10_000  # published training images to test on


def convert(votes: Path, data_dir: Path, file: Path) -> None:
    """Write an npz with the annotated images, their candidate sets, and test images."""
    asked = load_known("cifar10", data_dir, Reading(split="test"))
    others = load_known("cifar10", data_dir, Reading())
    assert asked.labels is not None
    assert others.labels is not None
    with np.load(votes) as found:
        candidates = found["counts"] > 0
    np.savez(
        file,
        images=np.moveaxis(np.asarray(asked.samples), 1, -1),
        candidates=candidates,
        labels=asked.labels,
        test_images=np.moveaxis(np.asarray(others.samples[:TESTS]), 1, -1),
        test_labels=others.labels[:TESTS],
        class_names=asked.class_names,
    )


def train(file: Path, set_prior: str, seed: int) -> dict[str, object]:
    """Train a default run and return the results."""
    out = file.parent / "runs" / f"{set_prior}-{seed}"
    command = [
        "train", "--data", str(file), "--candidates.allow-missing-truth", "--option", f"set_prior={set_prior}",
        "--precision", "fp32", "--threads", "1", "--seed", str(seed), "--out", str(out),
    ]  # fmt: skip
    subprocess.run([sys.executable, "-m", "papi", *command], check=True)
    summary = RunFolder(out).read_summary()
    assert summary is not None, "the command has finished"
    return {
        "set_prior": set_prior,
        "seed": seed,
        "mean_candidates": float(RunFolder(out).read_sets().candidates.sum(1).mean()),
        "true_label_present": summary.true_label_present,
        "resolved": summary.disambiguation_accuracy,
        "test_accuracy": summary.test_accuracy_last,
    }


def kept() -> list[dict[str, object]]:
    """The stored rows of the last measurement, if there is one."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def main() -> None:
    """Convert, train and store the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("votes", type=Path)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    file = given.folder / "cifar10h-union.npz"
    convert(given.votes, given.data_dir, file)
    found = [train(file, prior, seed) for seed in range(given.seeds) for prior in ("off", "auto")]
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in found))


if __name__ == "__main__":
    main()
