"""Converts the labels of images, in any form, to candidate sets `(N, K) bool`.

Every reader produces entries, one per image. Tables contain entries directly; annotation tools and tables of votes
contain statements, one per annotator and image, which `gathered` combines.
"""

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as shortened

import numpy as np

from papi.data.dataset import Report, refuse
from papi.data.own.annotation_arrays import SPLITS, Annotations, first_twice
from papi.data.own.tables import is_utf8
from papi.data.own.trees import Tree
from papi.data.own.votes import agreed
from papi.data.own.weights import shares
from papi.errors import UserError, unknown


@dataclass(frozen=True)
class Statement:
    """The answer of one annotator about one image. It has no labels if the image is only listed."""

    where: str  # position in the file, for messages
    file_name: str
    annotator: str = ""
    labels: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()  # labels that are certainly wrong
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each label is, if given
    sureness: float = 1.0  # weight of the statement among others
    label: str | None = None  # the true label, if known
    split: str = "train"


@dataclass
class Entry:
    """The labels of one image."""

    where: str
    file_name: str | None
    candidates: list[str] = field(default_factory=list)
    label: str | None = None
    split: str = "train"
    votes: Mapping[str, int] = field(default_factory=dict)  # number of votes for each label
    excluded: Sequence[str] = ()  # labels that are certainly wrong
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each candidate is, if given
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)  # annotator → labels

    @property
    def says_nothing(self) -> bool:
        """Whether the image is listed without any labels."""
        return not self.candidates and not self.excluded and not any(self.votes.values())


@dataclass(frozen=True)
class Rules:
    """Options for reading candidate sets."""

    votes: str = "union"  # how votes become candidate sets: union, at-least-N or vaguest
    allow_missing_truth: bool = False
    report: Report = refuse
    format: str | None = None  # of the file; None: detected from its content
    column: str | None = None  # the question to read, if an export has several
    threshold: float = 0.0  # minimum share of the weight of a candidate
    unlabelled: bool = False  # in empty rows, every class is a candidate; else they are rejected
    tree: Tree | None = None  # a label in it stands for the classes below it
    separator: str | None = None  # between labels in a cell, if not `|`
    by_label: bool = False  # a row without candidates has only its true label as a candidate

    def for_classes(self, classes: tuple[str, ...] | None) -> "Rules":
        """The same rules for known classes, to which the tree is limited."""
        if classes is None or self.tree is None:
            return self
        return replace(self, tree=self.tree.limited_to(classes))


def gathered(statements: Iterable[Statement], rules: Rules) -> list[Entry]:
    """Combine the statements about each image into one entry, in the order of first occurrence."""
    entries: dict[str, Entry] = {}
    by_file: dict[str, list[Statement]] = {}
    for each in statements if rules.tree is None else (_said_of_classes(each, rules.tree) for each in statements):
        by_file.setdefault(each.file_name, []).append(each)
        entry = entries.setdefault(each.file_name, Entry(each.where, each.file_name, split=each.split))
        entry.label = each.label or entry.label
    for name, entry in entries.items():
        said: dict[str, list[str]] = {}
        for each in by_file[name]:
            if each.labels:
                said.setdefault(each.annotator, []).extend(each.labels)
        sets = list(said.values())
        entry.said = said
        entry.candidates = agreed(sets, rules.votes)
        entry.votes = Counter(label for labels in sets for label in labels)
        entry.excluded = _excluded(by_file[name], entry.votes)
        entry.weights = _mean_weights(by_file[name], entry.candidates)
    return list(entries.values())


def in_classes(entry: Entry, tree: Tree) -> Entry:
    """An entry with classes instead of labels anywhere in the tree."""
    labels, excluded, weights = _classes(entry.candidates, entry.excluded, entry.weights, tree)
    return replace(entry, candidates=labels, excluded=excluded, weights=weights)


def _said_of_classes(said: Statement, tree: Tree) -> Statement:
    labels, excluded, weights = _classes(said.labels, said.excluded, said.weights, tree)
    return replace(said, labels=tuple(labels), excluded=tuple(excluded), weights=weights)


def _classes(
    labels: Sequence[str], excluded: Sequence[str], weights: Mapping[str, float], tree: Tree
) -> tuple[list[str], list[str], dict[str, float]]:
    """The classes that labels stand for, without excluded ones: some rose, but not the dog rose."""
    out = tree.classes_for(excluded)
    kept = [name for name in tree.classes_for(labels) if name not in out]
    return kept, out, {name: weight for name, weight in tree.weights_for(weights).items() if name in kept}


def _excluded(statements: Sequence[Statement], named: Mapping[str, int]) -> list[str]:
    """Labels that all annotators exclude, if none of them names a label."""
    if named:  # a label that one excludes and another names stays, and labels without a vote are no candidates anyway
        return []
    sets = [each.excluded for each in statements if each.excluded]
    return [label for label in sets[0] if all(label in labels for labels in sets)] if sets else []


def _mean_weights(statements: Sequence[Statement], candidates: Sequence[str]) -> dict[str, float]:
    """The mean of the annotators' weights, each weighted by its sureness; empty if none are given."""
    if all(not each.weights and each.sureness == 1 for each in statements):
        return {}
    total: dict[str, float] = dict.fromkeys(candidates, 0.0)
    for each in statements:
        own = each.weights or dict.fromkeys(each.labels, 1.0)
        whole = sum(own.values())
        for label, weight in own.items():
            if label in total and whole > 0:
                total[label] += each.sureness * weight / whole
    return total


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


def opened_rows(found: Annotations, rules: Rules) -> Annotations:
    """Make every class a candidate in empty training rows, if `rules.unlabelled` is set."""
    silent = ~found.candidates.any(1) & ~found.test & rules.unlabelled
    if found.votes is not None:
        silent &= ~found.votes.any(1)
    if not silent.any():
        return found
    candidates = found.candidates | silent[:, None]
    notes = (*found.notes, *unlabelled_note(found.source, candidates, silent))
    weights = found.weights
    if weights is not None:
        weights = np.where(silent[:, None], np.float32(1 / candidates.shape[1]), weights)
    return replace(found, candidates=candidates, weights=weights, notes=notes)


def checked(found: Annotations, rules: Rules) -> Annotations:
    """The valid rows: each file once, training rows with candidates, which include the true label if it is given."""
    if _is_valid(found):
        return found
    keep, missing, seen = [], 0, dict[str, str]()
    for row, where in enumerate(found.where):
        label, test = found.labels[row], found.test[row]
        if found.file_names is not None:
            name = posixpath.normpath(found.file_names[row])  # ./a.png is a.png
            if name in seen:
                rules.report(
                    f"{where} and {seen[name]} both describe {found.file_names[row]!r}: keep one row per file."
                )
                continue
            seen[name] = where
        if not test and not found.candidates[row].any():
            rules.report(
                f"{where}: no label has enough votes, but every training image needs a candidate."
                if found.votes is not None
                else f"{where}: the candidate set is empty; add candidates, or use --candidates.empty unlabelled."
            )
            continue
        if test and label < 0:
            rules.report(f"{where} is a test row without a true label: add one, or remove the row.")
            continue
        if not test and label >= 0 and not found.candidates[row, label]:
            missing += 1
            if not rules.allow_missing_truth:
                rules.report(
                    f"{where}: the true label {found.class_names[label]!r} is not among the candidates; "
                    "correct it, or allow that with --candidates.allow-missing-truth."
                )
                continue
        keep.append(row)
    result = found.taking(np.array(keep, np.int64))
    if missing and rules.allow_missing_truth:
        note = f"{missing} of {len(keep)} rows in {found.source} have a true label that is not a candidate."
        result = replace(result, notes=(*result.notes, note))
    return result


def _is_valid(found: Annotations) -> bool:
    """Whether no row has a problem, found without a loop over rows."""
    if found.file_names is not None and len(set(map(posixpath.normpath, found.file_names))) < len(found.where):
        return False
    if not found.class_names:
        return False
    known = found.labels >= 0
    inside = found.candidates[np.arange(len(known)), found.labels.clip(min=0)]
    return bool(np.where(found.test, known, found.candidates.any(1) & (inside | ~known)).all())


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
