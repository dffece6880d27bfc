"""Run folders made by hand: what a run leaves behind, without training."""

from pathlib import Path

import numpy as np

from papi.config import CandidatesConfig, RunConfig, to_dict
from papi.runs.folder import RunFolder
from papi.runs.schema import Arrays, EpochRow, Record, Sets, Summary

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
    """A finished run on data of its own, `data-known.npz` or `data-unknown.npz` beside the folder.

    `wrong` is the share of training images that are resolved to a wrong label.
    """
    random, sets = np.random.default_rng(seed), np.random.default_rng(set_seed)
    classes = len(names)
    labels = np.arange(images) % classes
    candidates = (sets.random((images, classes)) < 0.5) | (np.arange(classes) == labels[:, None])
    arrays: dict[str, np.ndarray] = {
        "images": sets.integers(0, 255, (images, channels, side, side), np.uint8),
        "class_names": np.array(names),
    }
    if truth:
        arrays |= {"labels": labels, "test_labels": np.arange(tests) % classes}
        arrays["test_images"] = sets.integers(0, 255, (tests, channels, side, side), np.uint8)
    else:
        arrays["candidates"] = candidates
    path.parent.mkdir(parents=True, exist_ok=True)
    data = path.parent / f"data-{'known' if truth else 'unknown'}.npz"
    np.savez(data, **arrays)  # type: ignore[arg-type]

    folder = RunFolder(path)
    path.mkdir(exist_ok=True)
    made = CandidatesConfig(kind="uniform" if truth else None)
    config = to_dict(RunConfig(data=str(data), candidates=made, method=method, epochs=epochs, seed=seed))
    command = ("/usr/bin/papi", "train", "--data", str(data), "--method", method)
    folder.write_record(
        Record(config=config, identity=config, classes=names, versions={"numpy": "2"}, command=command),
    )
    folder.write_sets(Sets(candidates=candidates))
    folder.write_rows([_row(epoch, epochs, truth) for epoch in range(epochs)])
    folder.write_arrays(_kept(random, candidates, labels, tests if truth else 0, wrong))
    folder.write_summary(_summary(method, truth, images, epochs))
    return folder


def summary_of(folder: RunFolder) -> Summary:
    """The summary of a folder that has one."""
    summary = folder.read_summary()
    assert summary is not None
    return summary


def _row(epoch: int, epochs: int, truth: bool) -> EpochRow:
    done = (epoch + 1) / epochs
    return EpochRow(
        epoch=epoch,
        loss=3 - done,
        seconds=9.0,
        mean_confidence=0.4 + done / 2,
        test_accuracy=0.8 * done if truth else None,
        prototype_accuracy=0.7 * done if truth else None,
        disambiguation_accuracy=0.9 * done if truth else None,
        intra_similarity=0.8 if truth else None,
        inter_similarity=0.1 if truth else None,
        logs={"loss_alignment": 1.0},
    )


def _kept(random: np.random.Generator, candidates: np.ndarray, labels: np.ndarray, tests: int, wrong: float) -> Arrays:
    classes = candidates.shape[1]
    confidence = random.random(candidates.shape) * candidates
    right = random.random(len(labels)) > wrong
    confidence[np.flatnonzero(right), labels[right]] += 2
    confidence = (confidence / confidence.sum(1, keepdims=True)).astype(np.float32)
    if not tests:
        return Arrays(confidence=confidence)
    scores = random.random((tests, classes))
    scores[np.arange(tests), np.arange(tests) % classes] += 0.8
    return Arrays(
        confidence=confidence,
        test_probabilities=(scores / scores.sum(1, keepdims=True)).astype(np.float32),
        embedding=random.normal(size=(tests, 6)).astype(np.float32),
        embedding_index=np.arange(tests),
        prototypes=random.normal(size=(classes, 6)).astype(np.float32),
    )


def _summary(method: str, truth: bool, images: int, epochs: int) -> Summary:
    return Summary(
        method=method,
        dataset="data",
        seconds=9.0,
        epochs=epochs,
        flip_rate=0.5 if truth else None,
        training_images=images,
        test_accuracy=0.8 if truth else None,
        disambiguation_accuracy=0.9 if truth else None,
        ambiguous_images=100 if truth else None,
        ambiguous_resolved=90 if truth else None,
    )
