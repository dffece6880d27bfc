"""The result of a run, in numbers."""

from collections.abc import Mapping

from papi.config import Settings
from papi.data.dataset import Dataset
from papi.runs.schema import EpochRow, Summary
from papi.training.evaluator import Conclusion


def summarise(
    settings: Settings,
    dataset: Dataset,
    statistics: Mapping[str, float],
    rows: list[EpochRow],
    picked: EpochRow,
    conclusion: Conclusion,
    *,
    trained_on: int,
    temperature: float,
    peak_memory: int,
) -> Summary:
    """What came out. The accuracy is that of the epoch picked without true labels, by default the last.

    The accuracies of the last epoch and of the best on the test samples stand beside it.
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
    )
