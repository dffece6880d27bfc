"""Summarises the results of a run."""

from collections.abc import Mapping, Sequence

import numpy as np

from papi.config import Settings
from papi.data.dataset import Dataset
from papi.data.packed_rows import Matrix, parts_of
from papi.runs.schema import EpochRow, Summary
from papi.training.evaluator import Conclusion

_SAME = 0.999  # cosine similarity above which two prototypes count as equal


def summarise(
    settings: Settings,
    dataset: Dataset,
    candidates: np.ndarray,
    statistics: Mapping[str, float],
    rows: list[EpochRow],
    picked: EpochRow,
    conclusion: Conclusion,
    *,
    trained_on: int,
    trained_epochs: float,
    temperature: float,
    peak_memory: int,
) -> Summary:
    """Summarise a run. Its accuracy is that of the epoch selected without true labels, by default the last.

    The summary also has the accuracies of the last epoch and of the best epoch on the test samples.
    """
    accuracies = [row.test_accuracy for row in rows if row.test_accuracy is not None]
    last10 = accuracies[-10:]
    speeds = [row.images_per_second for row in rows if row.images_per_second]
    return Summary(
        method=settings.method,
        dataset=dataset.name,
        network=settings.network,
        seed=settings.seed,
        epochs=settings.epochs,
        trained_epochs=trained_epochs,
        flip_rate=settings.candidates.rate if dataset.candidates is None else None,
        mean_candidates=statistics["mean_candidates"],
        singletons=statistics["singletons"],
        full_sets=statistics["full_sets"],
        true_label_present=statistics.get("true_label_present"),
        select=settings.select,
        picked_epoch=picked.epoch,
        test_accuracy=picked.test_accuracy,
        prototype_accuracy=picked.prototype_accuracy,
        covering_rate=picked.covering_rate,
        approximated_accuracy=picked.approximated_accuracy,
        candidate_likelihood=picked.candidate_likelihood,
        calibration_error=conclusion.calibration_error,
        uncalibrated_error=picked.calibration_error,
        test_accuracy_last=rows[-1].test_accuracy,
        test_accuracy_best=max(accuracies, default=None),
        test_accuracy_last10=sum(last10) / len(last10) if last10 else None,
        training_images=trained_on,
        held_out_images=len(dataset.samples) - trained_on,
        seconds=rows[-1].seconds,
        cpu_seconds=sum(row.cpu_seconds or 0.0 for row in rows),
        images_per_second=len(speeds) / sum(1 / speed for speed in speeds) if speeds else None,
        temperature=temperature,
        ambiguous_images=conclusion.ambiguous,
        ambiguous_resolved=conclusion.ambiguous_resolved,
        disambiguation_accuracy=conclusion.disambiguation_accuracy,
        peak_memory=peak_memory,
        kind="features" if dataset.photos is None and dataset.kind == "features" else "images",
        resolved_by_class=resolved_by_class(dataset.class_names, candidates, conclusion.arrays.confidence),
        collapsed_prototypes=collapsed(dataset.class_names, candidates, conclusion.arrays.prototypes),
    )


def resolved_by_class(names: Sequence[str], candidates: np.ndarray, confidence: Matrix) -> dict[str, int]:
    """Number of images resolved to each class that is a candidate of at least one image."""
    counts = np.zeros(len(names), np.int64)
    for part in parts_of(*candidates.shape):
        labels = np.where(candidates[part], confidence[part], -1).argmax(1)
        counts += np.bincount(labels, minlength=len(names))
    used = np.atleast_1d(candidates.any(0)).tolist()
    return {name: count for name, count, occurs in zip(names, counts.tolist(), used, strict=True) if occurs}


def collapsed(names: Sequence[str], candidates: np.ndarray, prototypes: np.ndarray | None) -> tuple[str, ...]:
    """Candidate classes with a useless prototype `(d,)`: it was never updated, or equals another prototype."""
    if prototypes is None:
        return ()
    used = np.flatnonzero(candidates.any(0))
    vectors = prototypes[used]
    similar = vectors @ vectors.T > _SAME
    gone = ~vectors.any(1) | (similar & ~np.eye(len(used), dtype=bool)).any(1)
    return tuple(names[number] for number in used[gone])
