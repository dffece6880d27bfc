"""The numbers and sentences on the page of a run."""

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

SURE = 0.9  # minimum confidence of a confident label
EPOCH_ROWS = 40  # in the table of epochs; longer runs are subsampled

_COLUMNS: dict[str, Measure] = {
    "test accuracy": lambda row: row.test_accuracy,
    "prototype accuracy": lambda row: row.prototype_accuracy,
    "labels resolved": lambda row: row.disambiguation_accuracy,
    "mean confidence": lambda row: row.mean_confidence,
    "calibration error": lambda row: row.calibration_error,
}
_REPORTED = " (used on this page)"


@dataclass(frozen=True)
class Fact:
    """A number with its name and an explanation."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """The epoch that one criterion would select."""

    rule: str
    epoch: int
    value: str
    accuracy: str


def percent(value: float | None, digits: int = 1) -> str:
    """Format a fraction in percent; "unknown" if there is none."""
    return "unknown" if value is None or not np.isfinite(value) else f"{100 * value:.{digits}f}%"


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def accuracy_of(run: Run) -> float | None:
    """Return the test accuracy."""
    return _result(run, lambda it: it.test_accuracy)


def prototype_accuracy_of(run: Run) -> float | None:
    """Return the test accuracy of the prototypes."""
    return _result(run, lambda it: it.prototype_accuracy)


def seconds_of(run: Run) -> float | None:
    """Return the training time so far in seconds."""
    return _result(run, lambda it: it.seconds)


def _result(run: Run, number: Callable[[EpochRow | Summary], float | None]) -> float | None:
    """Return a number of the finished run, otherwise of its last epoch."""
    value = None if run.summary is None else number(run.summary)
    return value if finite(value) else run.last(number)


def resolved_share(run: Run) -> float | None:
    """Return the fraction of ambiguous training images that are resolved to their true label."""
    if run.summary is not None and run.summary.ambiguous_images and run.summary.ambiguous_resolved is not None:
        return run.summary.ambiguous_resolved / run.summary.ambiguous_images
    return run.last(lambda row: row.disambiguation_accuracy)


def mean_candidates(run: Run) -> float | None:
    """Return the mean size of the candidate sets."""
    if run.candidates is not None:
        return float(run.sizes.mean())
    value = None if run.record is None else run.record.candidates.get("mean_candidates")
    return value if finite(value) else None


def images(run: Run) -> int | None:
    """Return the number of training images."""
    if run.candidates is not None:
        return len(run.candidates)
    return None if run.summary is None else run.summary.training_images


def sure_share(run: Run) -> float | None:
    """Return the fraction of confident labels, which needs no true labels."""
    return None if run.resolved is None else float((run.resolved.confidence >= SURE).mean())


def level_facts(run: Run) -> list[Fact]:
    """Return the test accuracy at each level of the class hierarchy."""
    probabilities, labels = run.kept.test_probabilities, run.test_labels
    if run.dataset is None or probabilities is None or labels is None or len(labels) != len(probabilities):
        return []
    levels = run.dataset.levels
    shares = level_accuracies(probabilities.argmax(1), labels, levels)
    return [
        Fact(
            f"Accuracy at level {number}",
            percent(share),
            f"of test images are in the right group of {len(set(level)):,}",
        )
        for number, (level, share) in enumerate(zip(levels, shares, strict=True), 1)
    ]


def headline(run: Run) -> list[Fact]:
    """Return the most important numbers that are known."""
    facts = []
    if (accuracy := accuracy_of(run)) is not None:
        facts.append(Fact("Test accuracy", percent(accuracy), "of test images are classified correctly"))
    facts += level_facts(run)
    if (share := resolved_share(run)) is not None:
        facts.append(Fact("Labels resolved", percent(share), "of ambiguous training images got their true label"))
    if (sure := sure_share(run)) is not None:
        facts.append(
            Fact("Confident labels", percent(sure), f"of training images have a confidence of {SURE:.0%} or more")
        )
    if (size := mean_candidates(run)) is not None:
        of = f", out of {len(run.class_names)} classes" if run.class_names else ""
        facts.append(Fact("Candidate labels", f"{size:.1f}", f"per image on average{of}"))
    if (seconds := seconds_of(run)) is not None:
        facts.append(Fact("Training time", duration(seconds), f"for {len(run.rows)} epochs"))
    return facts


def meaning(run: Run) -> str:
    """Summarise the run in sentences."""
    count, size = images(run), mean_candidates(run)
    told = []
    if count is not None and size is not None:
        told.append(
            f"The method {run.method} was trained on {count:,} images of {run.data_name} with {size:.1f} candidate "
            "labels per image on average, without true labels."
        )
    share, accuracy, sure = resolved_share(run), accuracy_of(run), sure_share(run)
    if share is not None:
        told.append(f"It found the true label of {percent(share)} of the ambiguous images.")
    if accuracy is not None:
        told.append(f"Its accuracy on test images is {percent(accuracy)}.")
    if share is None and sure is not None:
        told.append(f"It is confident in its label for {percent(sure)} of them.")
    return " ".join(told) or "This run has few results yet; they are shown below."


def truth(run: Run) -> str:
    """Explain what is unknown without true labels; empty if everything is known."""
    trained = run.labels is not None or resolved_share(run) is not None
    tested = run.test_labels is not None or accuracy_of(run) is not None
    if not trained and not tested:
        return (
            "There are no true labels for these images, so accuracy is unknown. This page shows the results that need "
            "no true labels: the resolved labels, their confidence, and close decisions."
        )
    if not trained:
        return "The true labels of the training images are unknown, so the accuracy of the resolved labels is unknown."
    if not tested:
        return "There are no test images with true labels, so the accuracy on new images is unknown."
    return ""


def epochs(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the table of epochs."""
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
    """A criterion that selects an epoch without true labels."""

    words: str
    measure: Measure
    select: str = ""  # its name in --select, if it is available there
    show: Callable[[float], str] = percent


_RULES = (
    _Rule(
        "Covering rate: how often the prediction is a candidate of the validation image",
        CRITERIA["covering_rate"],
        "covering-rate",
    ),
    _Rule(
        "Approximated accuracy: the same, weighted by the probability of each candidate",
        CRITERIA["approximated_accuracy"],
        "approximated-accuracy",
    ),
    _Rule(
        "Mean log-likelihood of the candidates of validation images",
        CRITERIA["candidate_likelihood"],
        show="{:.3f}".format,
    ),
    _Rule("Mean confidence in the resolved labels", lambda row: row.mean_confidence),
)


def choices(run: Run) -> list[Choice]:
    """Return the epoch that each criterion selects: first those without true labels, then the best on test images.

    Empty if there is neither a validation set nor a test accuracy, because confidence alone only grows.
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
        found.append(_choice("Best test accuracy (an oracle: it uses the true labels of the test images)", highest))
    return found


def _choice(rule: str, row: EpochRow, value: str = "") -> Choice:
    return Choice(rule, row.epoch + 1, value, _share(row.test_accuracy))


def has_held_out(run: Run) -> bool:
    """Return whether any criterion was measured on a validation set."""
    return any(run.last(measure) is not None for measure in CRITERIA.values())


def settings(run: Run) -> list[tuple[str, str]]:
    """Return every setting by its dotted name."""
    return [] if run.record is None else list(_flat(run.record.config or run.record.identity))


def _flat(values: Values, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else str(value)
            yield f"{prefix}{key}", shown or "–"


def fix_command(run: Run, served: bool = False) -> str:
    """Return the command that continues training with a person's decisions, for the current folder.

    A server has written them into the run folder.
    """
    here, folder = Path.cwd(), run.path.resolve()
    place = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return shlex.join(
        ["papi", "labels", str(place), "--fix", str(place / "decisions.csv") if served else "decisions.csv"]
    )


def parent(run: Run) -> str:
    """Return the folder of the run whose weights this run started from; empty if there is none."""
    return "" if run.record is None or run.record.parent is None else run.record.parent.folder


def versions(run: Run) -> list[tuple[str, str]]:
    """Return the versions of the software and the processor of the run."""
    return [] if run.record is None else list(run.record.versions.items())


def command(run: Run) -> str:
    """Return the command that started the run; empty if it was started from Python."""
    if run.record is None or not run.record.command:
        return ""
    first, *words = run.record.command
    program = PurePath(first.replace("\\", "/"))
    is_ours = program.stem == "papi" or (program.name == "__main__.py" and program.parent.name == "papi")
    return shlex.join(["papi", *words]) if is_ours else ""
