"""Check that a change leaves every trained model byte-equal.

    python -m recipes.same_weights BASE          # a revision of this repository: v0.1.0, HEAD~3, a54516a …

Trains tiny runs of every method, form and variant with the sources of BASE and with those of the working tree, in this
environment and on one thread, and compares their model.safetensors. Exits with code 1 if any of them differ.
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Annotated

import cyclopts
import numpy as np
from cyclopts import Parameter

from papi.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
NO_MODEL = "no model"
COMMON = "--threads 1 --device cpu"
SINGLE = "--precision fp32"  # unless a case names another precision: the default depends on the processor
SHORT = "--limit 192 --epochs 3 --batch-size 32"
IMAGES = f"{SHORT} --network small --candidates.annotator-epochs 1"
FEATURES = f"{SHORT} --data {{features}} --network mlp"
CASES = {
    **{f"{method}, quick": f"{IMAGES} --method {method}" for method in METHODS},
    **{f"{method}, paper": f"{IMAGES} --method {method} --preset paper" for method in METHODS},
    "papi, form paper": f"{IMAGES} --option passes=paper",
    "papi, form one": f"{IMAGES} --option passes=one",
    "papi, variant 1": f"{IMAGES} --option passes=paper --option mixup=off",
    "papi, variant 2": f"{IMAGES} --option passes=paper --option alignment=off",
    "papi, views SS": f"{IMAGES} --option views=SS",
    "papi, views WW": f"{IMAGES} --option passes=paper --option views=WW",
    "papi, noise tolerance": f"{IMAGES} --option noise_tolerance=auto --candidates.kind noisy",
    "papi, picked epoch": f"{IMAGES} --select covering-rate --calibrate",
    "papi, bf16": f"{IMAGES} --precision bf16",
    "papi, paper, q = 0.3": f"{IMAGES} --preset paper --candidates.flip-rate 0.3",
    "dpll, 3W": f"{IMAGES} --method dpll --option views=3W",
    "dpll, noise tolerance": f"{IMAGES} --method dpll --option noise_tolerance=0.2",
    "pico, version 2": f"{IMAGES} --method pico --option positives=truth",
    "pico, version 3": f"{IMAGES} --method pico --option positives=truth --option guidance=classifier",
    "lws, cross-entropy": f"{IMAGES} --method lws --option loss=cross-entropy --preset paper",
    "dirk, refined": f"{IMAGES} --method dirk --option refinement_weight=1",
    "proden, plain": f"{IMAGES} --method proden --option view=plain",
    "papi, resnet18": "--network resnet18 --limit 40 --epochs 1 --batch-size 20",
    "papi, instance-dependent": f"{IMAGES} --candidates.kind instance-dependent",
    "papi, class-dependent": f"{IMAGES} --candidates.kind class-dependent --candidates.matrix 02",
    "papi, uniform sets": f"{IMAGES} --candidates.kind uniform-sets",
    "papi, digits": f"{SHORT} --data digits --network small",
    **{f"{method}, features": f"{FEATURES} --method {method}" for method in ("papi", "pico", "proden", "cc")},
}  # fmt: skip

# Runs with the sources of each revision. It reads all commands from a file, so that torch is imported only once.
DRIVER = """
import json, sys, papi.cli
for words in json.load(open(sys.argv[1])):
    sys.argv[1:] = words
    try:
        papi.cli.main()
    except SystemExit as end:
        if end.code:
            print(*words, "ended with", end.code, file=sys.stderr)
"""


def write_features(file: Path) -> None:
    """A small feature table with three separable classes."""
    random = np.random.default_rng(0)
    labels = np.arange(240) % 3
    features = random.standard_normal((240, 6)) + 2 * np.eye(3, 6)[labels]
    names = np.array(["one", "two", "three"])
    np.savez(file, features=features.astype(np.float32), labels=labels, class_names=names)


def checkout(revision: str, folder: Path) -> None:
    """Extract the sources of a revision without touching the working tree."""
    packed = subprocess.run(["git", "-C", ROOT, "archive", revision, "src"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def train_all(sources: Path, out: Path, features: Path, cases: dict[str, str]) -> dict[str, str]:
    """The SHA-256 of every model, or a note that there is none."""
    folders = {name: out / str(number) for number, name in enumerate(cases)}
    words = [
        ["train", *_options(options).format(features=features).split(), "--out", str(folders[name])]
        for name, options in cases.items()
    ]
    commands = out.with_suffix(".json")
    commands.write_text(json.dumps(words))
    environment = os.environ | {
        "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1", "PAPI_CACHE": str(out.with_suffix(".cache")),
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-c", DRIVER, commands], env=environment, cwd=out.parent, check=True, stdout=subprocess.DEVNULL
    )
    models = {name: folder / "model.safetensors" for name, folder in folders.items()}
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else NO_MODEL
        for name, file in models.items()
    }


def _options(own: str) -> str:
    return f"{COMMON} {own}" if "--precision" in own else f"{COMMON} {SINGLE} {own}"


def verdict(before: str, after: str) -> str:
    """Compare two hashes. A case that the base does not support, such as a later method, is new."""
    if after == NO_MODEL or before not in (after, NO_MODEL):
        return "DIFFERENT"
    return "new" if before == NO_MODEL else "equal"


def main(base: str, /, *, only: Annotated[str, Parameter(help="Cases whose name contains this text.")] = "") -> None:
    """Compare the models of the working tree with those of a revision."""
    cases = {name: options for name, options in CASES.items() if only in name}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_features(folder / "features.npz")
        checkout(base, folder / "base")
        before = train_all(folder / "base" / "src", folder / "before", folder / "features.npz", cases)
        after = train_all(ROOT / "src", folder / "after", folder / "features.npz", cases)
    verdicts = {name: verdict(before[name], after[name]) for name in cases}
    for name, told in verdicts.items():
        print(f"{told:10} {name:32} {before[name][:12]} {after[name][:12]}")
    compared = [told for told in verdicts.values() if told != "new"]
    print(f"{compared.count('equal')} of {len(compared)} models are byte-equal to those of {base}.")
    sys.exit("DIFFERENT" in compared)


if __name__ == "__main__":
    cyclopts.run(main)
