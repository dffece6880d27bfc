"""Run folders made by hand: what a run leaves behind, without training."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from papi.config import RunConfig, to_dict
from papi.runs.folder import RunFolder

AWKWARD = ('<script>alert("x")</script>', 'it\'s "quoted", with a comma', "fox 🦊👩‍🔬", "שלום עולם")


def write_run(
    path: Path,
    *,
    names: tuple[str, ...] = ("ant", "bee", "cat", "dog"),
    images: int = 120,
    tests: int = 40,
    side: int = 8,
    channels: int = 1,
    truth: bool = True,
    method: str = "papi",
    seed: int = 0,
    set_seed: int = 0,
    epochs: int = 3,
    wrong: float = 0.15,
) -> RunFolder:
    """A finished run on data of its own, `data.npz` beside the folder. `wrong` is the share of wrong labels."""
    random, sets = np.random.default_rng(seed), np.random.default_rng(set_seed)
    classes = len(names)
    labels = np.arange(images) % classes
    candidates = (sets.random((images, classes)) < 0.5) | (np.arange(classes) == labels[:, None])
    arrays: dict[str, np.ndarray] = {
        "images": sets.integers(0, 255, (images, channels, side, side), np.uint8),
        "class_names": np.array(names),
    }
    if truth:
        test_labels = np.arange(tests) % classes
        arrays |= {"labels": labels, "test_labels": test_labels}
        arrays["test_images"] = sets.integers(0, 255, (tests, channels, side, side), np.uint8)
    else:
        arrays["candidates"] = candidates
    path.parent.mkdir(parents=True, exist_ok=True)
    data = path.parent / f"data-{'known' if truth else 'unknown'}.npz"
    np.savez(data, **arrays)  # type: ignore[arg-type]

    folder = RunFolder(path)
    path.mkdir(exist_ok=True)
    config = to_dict(RunConfig(data=str(data), method=method, epochs=epochs, seed=seed))
    command = ["/usr/bin/papi", "train", "--data", str(data), "--method", method]
    folder.write_config(
        {"config": config, "identity": config, "candidates": {}, "versions": {"numpy": "2"}, "command": command}
    )
    folder.write_arrays(folder.candidates_file, {"candidates": candidates})
    folder.write_rows([_row(epoch, epochs, truth) for epoch in range(epochs)])
    folder.write_arrays(folder.arrays_file, _kept(random, candidates, labels, tests if truth else 0, wrong))
    folder.write_summary(_summary(method, path, truth, images))
    return folder


def _row(epoch: int, epochs: int, truth: bool) -> dict[str, Any]:
    done = (epoch + 1) / epochs
    row = {"epoch": epoch, "loss": 3 - done, "loss_alignment": 1.0, "mean_confidence": 0.4 + done / 2, "seconds": 9.0}
    known = {"test_accuracy": 0.8 * done, "prototype_accuracy": 0.7 * done, "disambiguation_accuracy": 0.9 * done}
    return row | known | {"intra_similarity": 0.8, "inter_similarity": 0.1} if truth else row


def _kept(
    random: np.random.Generator, candidates: np.ndarray, labels: np.ndarray, tests: int, wrong: float
) -> dict[str, np.ndarray]:
    classes = candidates.shape[1]
    confidence = random.random(candidates.shape) * candidates
    right = random.random(len(labels)) > wrong
    confidence[np.flatnonzero(right), labels[right]] += 2
    arrays = {"confidence": (confidence / confidence.sum(1, keepdims=True)).astype(np.float32)}
    if tests:
        scores = random.random((tests, classes))
        scores[np.arange(tests), np.arange(tests) % classes] += 0.8
        arrays["test_probabilities"] = (scores / scores.sum(1, keepdims=True)).astype(np.float32)
        arrays["embedding"] = random.normal(size=(tests, 6)).astype(np.float32)
        arrays["embedding_index"] = np.arange(tests)
        arrays["prototypes"] = random.normal(size=(classes, 6)).astype(np.float32)
    return arrays


def _summary(method: str, path: Path, truth: bool, images: int) -> dict[str, Any]:
    summary = {"method": method, "dataset": "data", "flip_rate": 0.5, "seconds": 9.0, "training_images": images}
    known = {"test_accuracy": 0.8, "disambiguation_accuracy": 0.9, "ambiguous_images": 100, "ambiguous_resolved": 90}
    return json.loads(json.dumps(summary | (known if truth else {"test_accuracy": None})))  # type: ignore[no-any-return]
