"""The numbers and sentences of a run's page, in words for people who know their images and not our formulas."""

import shlex
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from papi.report.reading import Run, is_number
from papi.training.metrics import picked

SURE = 0.9  # confidence from which the page calls a label sure
EPOCH_ROWS = 40  # of the table of epochs; longer runs show every so many

LOSSES = "loss"
COLUMNS = {
    "test_accuracy": "test accuracy",
    "prototype_accuracy": "by prototypes",
    "disambiguation_accuracy": "labels resolved",
    "mean_confidence": "mean confidence",
    "calibration_error": "calibration error",
}
CRITERIA = {
    "covering_rate": "Covering rate: how often the answer is among the candidates of images held out",
    "approximated_accuracy": "Approximated accuracy: the same, weighted by how likely each candidate is",
    "candidate_likelihood": "Likelihood of the candidates of images held out (mean logarithm)",
    "mean_confidence": "Mean confidence in the resolved labels",
}
_REPORTED = " (what this page reports)"


@dataclass(frozen=True)
class Fact:
    """A number with its name, and what it is about."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """What one way of choosing an epoch would have chosen."""

    rule: str
    epoch: int
    value: str
    accuracy: str


def percent(value: float | None, digits: int = 1) -> str:
    return "unknown" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f}%"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def result(run: Run, key: str) -> float | None:
    """A number of the finished run, else of its last epoch."""
    value = (run.summary or {}).get(key)
    return float(value) if is_number(value) else run.last(key)


def resolved_share(run: Run) -> float | None:
    """Of the training images with several candidates, the share whose label was resolved to the true one."""
    summary = run.summary or {}
    right, ambiguous = summary.get("ambiguous_resolved"), summary.get("ambiguous_images")
    if is_number(right) and is_number(ambiguous) and ambiguous:
        return float(right) / float(ambiguous)
    return run.last("disambiguation_accuracy")


def mean_candidates(run: Run) -> float | None:
    if run.candidates is not None:
        return float(run.candidates.sum(1).mean())
    value = (run.record.get("candidates") or {}).get("mean_candidates")
    return float(value) if is_number(value) else None


def images(run: Run) -> int | None:
    value = len(run.candidates) if run.candidates is not None else (run.summary or {}).get("training_images")
    return int(value) if is_number(value) else None


def sure_share(run: Run) -> float | None:
    """How many labels the model is sure of: known without any true label."""
    return None if run.resolved is None else float((run.resolved.confidence >= SURE).mean())


def headline(run: Run) -> list[Fact]:
    """What one wants to know first; numbers that cannot be known are left out."""
    facts = []
    if (accuracy := result(run, "test_accuracy")) is not None:
        facts.append(Fact("Test accuracy", percent(accuracy), "of new images are recognised"))
    if (share := resolved_share(run)) is not None:
        facts.append(Fact("Labels resolved", percent(share), "of ambiguous training images got their true label"))
    if (sure := sure_share(run)) is not None:
        facts.append(Fact("Sure labels", percent(sure), f"of training images at {SURE:.0%} confidence or more"))
    if (size := mean_candidates(run)) is not None:
        of = f"of {len(run.class_names)} classes, on average" if run.class_names else "on average"
        facts.append(Fact("Possible labels", f"{size:.1f}", f"for an image, {of}"))
    if (seconds := result(run, "seconds")) is not None:
        facts.append(Fact("Training time", duration(seconds), f"{len(run.rows)} passes over the images"))
    return facts


def meaning(run: Run) -> str:
    """The headline in sentences."""
    count, size = images(run), mean_candidates(run)
    told = []
    if count is not None and size is not None:
        told.append(
            f"The method {run.method} was given {count:,} images of {run.data_name}, each with {size:.1f} possible "
            "labels on average, and was never told which one is right."
        )
    share, accuracy, sure = resolved_share(run), result(run, "test_accuracy"), sure_share(run)
    if share is not None:
        told.append(f"It settled on the true label for {percent(share)} of the ambiguous ones.")
    if accuracy is not None:
        told.append(f"Of images it had never seen, it recognises {percent(accuracy)}.")
    if share is None and sure is not None:
        told.append(f"It is sure of its choice for {percent(sure)} of them.")
    return " ".join(told) or "There is not much in this folder yet; what there is stands below."


def truth(run: Run) -> str:
    """What cannot be known without true labels; empty if all can."""
    trained = run.labels is not None or resolved_share(run) is not None
    tested = run.test_labels is not None or result(run, "test_accuracy") is not None
    if not trained and not tested:
        return (
            "No true labels are known for these images, so nobody can say how often the model is right. "
            "This page shows what can be known without them: what it chose, how sure it is, and where it hesitates."
        )
    if not trained:
        return "The true labels of the training images are not known: how many were resolved rightly cannot be said."
    if not tested:
        return "There are no test images with true labels: how well new images are recognised cannot be said."
    return ""


def course(run: Run, key: str) -> tuple[list[int], list[float]]:
    """Epochs (from 1) and values of a measurement; epochs without one are left out."""
    rows = [row for row in run.rows if is_number(row.get(key))]
    return [int(row["epoch"]) + 1 for row in rows], [float(row[key]) for row in rows]


def loss_terms(run: Run) -> list[str]:
    """Names of the logged losses, the total first."""
    found = {key for row in run.rows for key in row if key == LOSSES or key.startswith("loss_")}
    return sorted(found, key=lambda key: (key != LOSSES, key))


def epochs(run: Run) -> tuple[list[str], list[list[str]]]:
    """The course of the run as a table: headings and rows."""
    keys = [key for key in COLUMNS if run.last(key) is not None]
    every = -(-len(run.rows) // EPOCH_ROWS) if run.rows else 1
    shown = [row for n, row in enumerate(run.rows) if n % every == 0 or n == len(run.rows) - 1]
    body = [
        [
            str(int(row["epoch"]) + 1),
            f"{row[LOSSES]:.3f}" if is_number(row.get(LOSSES)) else "–",
            *(percent(row[key]) if is_number(row.get(key)) else "–" for key in keys),
        ]
        for row in shown
    ]
    return ["epoch", "loss", *(COLUMNS[key] for key in keys)], body


def choices(run: Run) -> list[Choice]:
    """Which epoch each criterion picks: first those that need no true label, at last the one that looks at the test."""
    if not run.rows:
        return []
    last = run.rows[-1]
    rule = str(run.config.get("select") or "last").replace("-", "_")
    words = f"The last epoch{_REPORTED if rule == 'last' else ''}"
    found = [Choice(words, int(last["epoch"]) + 1, "", _accuracy(last))]
    for key, words in CRITERIA.items():
        rows = [row for row in run.rows if is_number(row.get(key))]
        if rows:
            best = rows[picked([float(row[key]) for row in rows])]
            value = percent(best[key]) if key != "candidate_likelihood" else f"{best[key]:.3f}"
            told = f"{words}{_REPORTED if rule == key else ''}"
            found.append(Choice(told, int(best["epoch"]) + 1, value, _accuracy(best)))
    tested = [row for row in run.rows if is_number(row.get("test_accuracy"))]
    if tested:
        best = max(tested, key=lambda row: float(row["test_accuracy"]))
        words = "The best on the test images (no fair choice: it uses the answers)"
        found.append(Choice(words, int(best["epoch"]) + 1, "", _accuracy(best)))
    return found


def has_held_out(run: Run) -> bool:
    """Whether any criterion was measured on images kept aside."""
    return any(run.last(key) is not None for key in CRITERIA if key != "mean_confidence")


def _accuracy(row: dict[str, Any]) -> str:
    return percent(row["test_accuracy"]) if is_number(row.get("test_accuracy")) else "–"


def settings(run: Run) -> list[tuple[str, str]]:
    """Every setting by its dotted name."""
    return list(_flat(run.config, "")) or list(_flat(run.record.get("identity") or {}, ""))


def _flat(values: dict[str, Any], prefix: str) -> Any:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value)
            yield f"{prefix}{key}", shown or "–"


def fix_command(run: Run) -> str:
    """What trains on with a person's decisions, typed where the page was made."""
    here, folder = Path.cwd(), run.path.resolve()
    place = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return shlex.join(["papi", "labels", str(place), "--fix", "decisions.csv"])


def parent(run: Run) -> str:
    """The folder of the run whose weights this one started from; empty if it started by itself."""
    found = run.record.get("parent")
    return str(found.get("folder", "")) if isinstance(found, dict) else ""


def versions(run: Run) -> list[tuple[str, str]]:
    found = run.record.get("versions")
    return [(str(name), str(value)) for name, value in found.items()] if isinstance(found, dict) else []


def command(run: Run) -> str:
    """What a person typed, so that it can be typed again; empty if the run was started from Python."""
    words = run.record.get("command")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return ""
    program = PurePath(words[0].replace("\\", "/"))
    is_ours = program.stem == "papi" or (program.name == "__main__.py" and program.parent.name == "papi")
    return shlex.join(["papi", *words[1:]]) if is_ours else ""
