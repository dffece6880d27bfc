"""Converts entries, one per image, to arrays: candidate sets `(N, K) bool`, labels, votes and weights."""

from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as shortened

import numpy as np

from papi.data.dataset import Report
from papi.data.own.annotation_arrays import SPLITS, Annotations, first_twice
from papi.data.own.entries import Entry, Rules
from papi.data.own.tables import is_utf8
from papi.data.own.weights import shares
from papi.errors import UserError, unknown


def encode(
    entries: Iterable[Entry], source: str, classes: tuple[str, ...] | None, rules: Rules, *, named: bool, voted: bool
) -> Annotations:
    """Convert entries to arrays. Entries with an unknown or repeated label are reported and left out.

    `named` tells whether the entries have file names, and `voted` whether they have votes.
    """
    usable = [entry for entry in entries if _usable(entry, rules.report)]
    if classes is None and rules.tree is not None:
        classes = rules.tree.leaves
    elif classes is None:
        mentioned = {label for entry in usable for label in (*entry.candidates, *entry.excluded)}
        classes = in_order(mentioned)
    elif (bad := next((name for name in classes if "\0" in name), None)) is not None:
        raise UserError(f"{source} has the class {bad!r}, which contains a NUL: rename it.")
    place = {name: k for k, name in enumerate(classes)}
    good = [entry for entry in usable if _known(entry, classes, place, rules.report)]
    candidates = np.zeros((len(good), len(classes)), bool)
    silent = np.array([entry.says_nothing and entry.split == "train" for entry in good], bool) & rules.unlabelled
    for row, entry in enumerate(good):
        if not entry.candidates and (entry.excluded or silent[row]):
            candidates[row] = True
            candidates[row, [place[label] for label in entry.excluded]] = False
        candidates[row, [place[label] for label in entry.candidates]] = True
    annotators, opinions = _opinions(good, place)
    weights = _weights(good, place, candidates)
    if weights is not None:
        candidates, weights = shares(candidates, weights, rules.threshold)
    return Annotations(
        source=source,
        where=tuple(entry.where for entry in good),
        class_names=classes,
        candidates=candidates,
        labels=np.array([place.get(entry.label, -1) if entry.label else -1 for entry in good], np.int64),
        test=np.array([entry.split == "test" for entry in good], bool),
        file_names=tuple(entry.file_name or "" for entry in good) if named else None,
        votes=_votes(good, place) if voted else None,
        weights=weights,
        annotators=annotators,
        opinions=opinions,
        notes=unlabelled_note(source, candidates, silent),
    )


def unlabelled_note(source: str, candidates: np.ndarray, silent: np.ndarray) -> tuple[str, ...]:
    """A message with the number of images without a label, `(N,) bool`, and with only one; empty if all have labels."""
    if not silent.any():
        return ()
    known = int((candidates.sum(1) == 1).sum())
    return (
        f"{int(silent.sum()):,} of {len(silent):,} rows in {source} are unlabelled, so every class is a candidate; "
        f"{known:,} rows have only one candidate.",
    )


def _known(entry: Entry, classes: tuple[str, ...], place: Mapping[str, int], report: Report) -> bool:
    """Whether all labels of an entry are classes; reports the first that is not."""
    # A training row without candidates is rejected for that, whatever its label is.
    label = entry.label if entry.candidates or entry.excluded or entry.split == "test" else None
    mentioned = [*entry.candidates, *entry.excluded, *([label] if label else [])]
    stranger = next((label for label in mentioned if label not in place), None)
    if stranger is not None:
        report(f"{entry.where}: {unknown('label', stranger, classes)}")
    return stranger is None


def _votes(entries: Sequence[Entry], place: Mapping[str, int]) -> np.ndarray:
    """The number of votes for each label, `(N, K) int64`."""
    votes = np.zeros((len(entries), len(place)), np.int64)
    for row, entry in enumerate(entries):
        for label, count in entry.votes.items():
            if label in place:
                votes[row, place[label]] = count
    return votes


def _weights(entries: Sequence[Entry], place: Mapping[str, int], candidates: np.ndarray) -> np.ndarray | None:
    """How likely each candidate is, `(N, K) float64`; equal in rows without weights, None if there are none at all."""
    if not any(entry.weights for entry in entries):
        return None
    weights = candidates.astype(np.float64)
    for row, entry in enumerate(entries):
        if entry.weights:
            weights[row] = 0
            weights[row, [place[label] for label in entry.weights]] = list(entry.weights.values())
    return weights


def _opinions(entries: Sequence[Entry], place: Mapping[str, int]) -> tuple[tuple[str, ...], np.ndarray | None]:
    """The annotators, and their votes `(S, 3)`: indices of entry, annotator and class."""
    annotators = {name: number for number, name in enumerate(sorted({name for each in entries for name in each.said}))}
    rows = [
        (row, annotators[name], place[label])
        for row, entry in enumerate(entries)
        for name, labels in entry.said.items()
        for label in labels
        if label in place
    ]
    return tuple(annotators), np.array(rows, np.int64) if rows else None


def _usable(entry: Entry, report: Report) -> bool:
    """Whether an entry can be encoded; reports why not."""
    mentioned = [*entry.candidates, *entry.excluded, entry.label or ""]
    twice = first_twice(entry.candidates)
    unwritable = next((label for label in mentioned if "\0" in label or not is_utf8(label)), None)
    both = next((label for label in entry.candidates if label in entry.excluded), None)
    if twice is not None:
        report(f"{entry.where} lists the candidate {twice!r} twice: remove one.")
    elif both is not None:
        report(f"{entry.where} both names and excludes {both!r}: remove one.")
    elif "" in entry.candidates or "" in entry.excluded:
        listed = "|".join(entry.candidates or entry.excluded)
        report(f"{entry.where} has an empty name among its candidates: {shortened(listed)}.")
    elif unwritable is not None:
        what = "contains a NUL" if "\0" in unwritable else "is not valid UTF-8"
        report(f"{entry.where} has the class {unwritable!r}, which {what}: rename it.")
    elif entry.split not in SPLITS:
        report(f"{entry.where}: {unknown('split', entry.split, SPLITS)}")
    else:
        return True
    return False


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort class names that have no given order: numbers by value, then texts."""
    return tuple(sorted(names, key=_natural))


def _natural(name: str) -> tuple[bool, int, str]:
    """Sort key: numbers by value, before texts. Python refuses to convert numbers with more digits."""
    return (False, int(name), name) if name.isdecimal() and len(name) <= 1000 else (True, 0, name)
