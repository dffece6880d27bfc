"""The numbers and sentences of a run's page, in words for people who know their images and not our formulas."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from papi.config import Values
from papi.report.measures import CRITERIA, Measure, best, finite
from papi.report.run import Run
from papi.runs.schema import EpochRow, Summary
from papi.training.metrics import level_accuracies

SURE = 0.9  # confidence from which the page calls a label sure
EPOCH_ROWS = 40  # of the table of epochs; longer runs show every so many

_COLUMNS: dict[str, Measure] = {
    "test accuracy": lambda row: row.test_accuracy,
    "by prototypes": lambda row: row.prototype_accuracy,
    "labels resolved": lambda row: row.disambiguation_accuracy,
    "mean confidence": lambda row: row.mean_confidence,
    "calibration error": lambda row: row.calibration_error,
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
    """A share in percent, or "unknown"."""
    return "unknown" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f}%"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def accuracy_of(run: Run) -> float | None:
    """The share of test images that are recognised."""
    return _result(run, lambda it: it.test_accuracy)


def prototype_accuracy_of(run: Run) -> float | None:
    """The share of test images that the prototypes alone recognise."""
    return _result(run, lambda it: it.prototype_accuracy)


def seconds_of(run: Run) -> float | None:
    """How long training took, or has taken so far."""
    return _result(run, lambda it: it.seconds)


def _result(run: Run, number: Callable[[EpochRow | Summary], float | None]) -> float | None:
    """A number of the finished run, else of its last epoch."""
    value = None if run.summary is None else number(run.summary)
    return value if finite(value) else run.last(number)


def resolved_share(run: Run) -> float | None:
    """Of the training images with several candidates, the share whose label was resolved to the true one."""
    if run.summary is not None and run.summary.ambiguous_images and run.summary.ambiguous_resolved is not None:
        return run.summary.ambiguous_resolved / run.summary.ambiguous_images
    return run.last(lambda row: row.disambiguation_accuracy)


def mean_candidates(run: Run) -> float | None:
    """The mean size of the candidate sets."""
    if run.candidates is not None:
        return float(run.candidates.sum(1).mean())
    value = None if run.record is None else run.record.candidates.get("mean_candidates")
    return value if finite(value) else None


def images(run: Run) -> int | None:
    """The number of training images."""
    if run.candidates is not None:
        return len(run.candidates)
    return None if run.summary is None else run.summary.training_images


def sure_share(run: Run) -> float | None:
    """How many labels the model is sure of: known without any true label."""
    return None if run.resolved is None else float((run.resolved.confidence >= SURE).mean())


def level_facts(run: Run) -> list[Fact]:
    """How often new images are put into the right group, for each level of a tree of classes."""
    probabilities, labels = run.kept.test_probabilities, run.test_labels
    if run.dataset is None or probabilities is None or labels is None or len(labels) != len(probabilities):
        return []
    levels = run.dataset.levels
    shares = level_accuracies(probabilities.argmax(1), labels, levels)
    return [
        Fact(f"Accuracy at level {number}", percent(share), f"in the right one of {len(set(level)):,} groups")
        for number, (level, share) in enumerate(zip(levels, shares, strict=True), 1)
    ]


def headline(run: Run) -> list[Fact]:
    """What one wants to know first; numbers that cannot be known are left out."""
    facts = []
    if (accuracy := accuracy_of(run)) is not None:
        facts.append(Fact("Test accuracy", percent(accuracy), "of new images are recognised"))
    facts += level_facts(run)
    if (share := resolved_share(run)) is not None:
        facts.append(Fact("Labels resolved", percent(share), "of ambiguous training images got their true label"))
    if (sure := sure_share(run)) is not None:
        facts.append(Fact("Sure labels", percent(sure), f"of training images at {SURE:.0%} confidence or more"))
    if (size := mean_candidates(run)) is not None:
        of = f"of {len(run.class_names)} classes, on average" if run.class_names else "on average"
        facts.append(Fact("Possible labels", f"{size:.1f}", f"for an image, {of}"))
    if (seconds := seconds_of(run)) is not None:
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
    share, accuracy, sure = resolved_share(run), accuracy_of(run), sure_share(run)
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
    tested = run.test_labels is not None or accuracy_of(run) is not None
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


def epochs(run: Run) -> tuple[list[str], list[list[str]]]:
    """The course of the run as a table: headings and rows."""
    columns = {title: measure for title, measure in _COLUMNS.items() if run.last(measure) is not None}
    every = -(-len(run.rows) // EPOCH_ROWS) if run.rows else 1
    shown = [row for n, row in enumerate(run.rows) if n % every == 0 or n == len(run.rows) - 1]
    body = [
        [
            str(row.epoch + 1),
            f"{row.loss:.3f}" if finite(row.loss) else "–",
            *(_share(measure(row)) for measure in columns.values()),
        ]
        for row in shown
    ]
    return ["epoch", "loss", *columns], body


def _share(value: float | None) -> str:
    return percent(value) if finite(value) else "–"


@dataclass(frozen=True)
class _Rule:
    """A way of choosing an epoch without true labels."""

    words: str
    measure: Measure
    select: str = ""  # its name as a value of --select, if it is one
    show: Callable[[float], str] = percent


_RULES = (
    _Rule(
        "Covering rate: how often the answer is among the candidates of images held out",
        CRITERIA["covering_rate"],
        "covering-rate",
    ),
    _Rule(
        "Approximated accuracy: the same, weighted by how likely each candidate is",
        CRITERIA["approximated_accuracy"],
        "approximated-accuracy",
    ),
    _Rule(
        "Likelihood of the candidates of images held out (mean logarithm)",
        CRITERIA["candidate_likelihood"],
        show="{:.3f}".format,
    ),
    _Rule("Mean confidence in the resolved labels", lambda row: row.mean_confidence),
)


def choices(run: Run) -> list[Choice]:
    """Which epoch each rule picks: first the rules that need no true label, at last the best on the test images.

    Nothing if no image was kept aside to choose by: confidence alone only grows.
    """
    if not run.rows or not (has_held_out(run) or accuracy_of(run) is not None):
        return []
    words = f"The last epoch{_REPORTED if run.select == 'last' else ''}"
    found = [_choice(words, run.rows[-1])]
    for rule in _RULES:
        if (pick := best(run.rows, rule.measure)) is not None:
            words = f"{rule.words}{_REPORTED if rule.select == run.select else ''}"
            found.append(_choice(words, pick[0], rule.show(pick[1])))
    tested = [row for row in run.rows if finite(row.test_accuracy)]
    if tested:
        highest = max(tested, key=lambda row: row.test_accuracy or 0.0)
        found.append(_choice("The best on the test images (no fair choice: it uses the answers)", highest))
    return found


def _choice(rule: str, row: EpochRow, value: str = "") -> Choice:
    return Choice(rule, row.epoch + 1, value, _share(row.test_accuracy))


def has_held_out(run: Run) -> bool:
    """Whether any criterion was measured on images held out."""
    return any(run.last(measure) is not None for measure in CRITERIA.values())


def settings(run: Run) -> list[tuple[str, str]]:
    """Every setting by its dotted name."""
    return [] if run.record is None else list(_flat(run.record.config or run.record.identity))


def _flat(values: Values, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value)
            yield f"{prefix}{key}", shown or "–"


def fix_command(run: Run, served: bool = False) -> str:
    """The command that trains on with a person's decisions, for the folder where the page was made.

    A server has written them into the folder of the run.
    """
    here, folder = Path.cwd(), run.path.resolve()
    place = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return shlex.join(
        ["papi", "labels", str(place), "--fix", str(place / "decisions.csv") if served else "decisions.csv"]
    )


def parent(run: Run) -> str:
    """The folder of the run whose weights this one started from; empty if it started by itself."""
    return "" if run.record is None or run.record.parent is None else run.record.parent.folder


def versions(run: Run) -> list[tuple[str, str]]:
    """What computed the run: programs with their versions, and the processor."""
    return [] if run.record is None else list(run.record.versions.items())


def command(run: Run) -> str:
    """The command that began the run; empty if it was started from Python."""
    if run.record is None or not run.record.command:
        return ""
    first, *words = run.record.command
    program = PurePath(first.replace("\\", "/"))
    is_ours = program.stem == "papi" or (program.name == "__main__.py" and program.parent.name == "papi")
    return shlex.join(["papi", *words]) if is_ours else ""
