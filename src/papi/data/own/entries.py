"""What is said about each image, in whatever form, and how it becomes candidate sets `(N, K) bool`.

Every reader ends in entries, one for each image. A table may hold them as they are; annotation tools and tables of
votes hold statements, one for each annotator and image, which `gathered` brings together.
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
    """What one annotator says about one image. Without labels, the image is listed and nothing is said."""

    where: str  # the place in the file, for messages
    file_name: str
    annotator: str = ""
    labels: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()  # labels that it surely is not
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each of the labels is, if that is said
    sureness: float = 1.0  # how much the statement counts beside others
    label: str | None = None  # the true one, if it is known
    split: str = "train"


@dataclass
class Entry:
    """What is said about one image."""

    where: str
    file_name: str | None
    candidates: list[str] = field(default_factory=list)
    label: str | None = None
    split: str = "train"
    votes: Mapping[str, int] = field(default_factory=dict)  # how many named each label
    excluded: Sequence[str] = ()  # labels that it surely is not
    weights: Mapping[str, float] = field(default_factory=dict)  # how likely each candidate is, if that is said
    said: Mapping[str, Sequence[str]] = field(default_factory=dict)  # annotator → labels

    @property
    def says_nothing(self) -> bool:
        """Whether the image is listed without a word about its label."""
        return not self.candidates and not self.excluded and not any(self.votes.values())


@dataclass(frozen=True)
class Rules:
    """How candidate sets are to be read."""

    votes: str = "union"  # how votes become candidate sets: union, at-least-N or vaguest
    allow_missing_truth: bool = False
    report: Report = refuse
    format: str | None = None  # of the file; None: found by its content
    column: str | None = None  # the question to read, where an export has several
    threshold: float = 0.0  # the least share of the weight that makes a label a candidate
    unlabelled: bool = False  # what is empty may be anything; else it is refused
    tree: Tree | None = None  # a label in it stands for the classes below
    separator: str | None = None  # between the labels in a cell, if it is not `|`
    by_label: bool = False  # a row without candidates has its true label as the only one

    def for_classes(self, classes: tuple[str, ...] | None) -> "Rules":
        """The same, where the classes are known before: a tree may have more."""
        if classes is None or self.tree is None:
            return self
        return replace(self, tree=self.tree.limited_to(classes))


def gathered(statements: Iterable[Statement], rules: Rules) -> list[Entry]:
    """The statements about each image as one entry, in the order in which images occur first."""
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
    """An entry about classes, in place of labels anywhere in the tree."""
    labels, excluded, weights = _classes(entry.candidates, entry.excluded, entry.weights, tree)
    return replace(entry, candidates=labels, excluded=excluded, weights=weights)


def _said_of_classes(said: Statement, tree: Tree) -> Statement:
    labels, excluded, weights = _classes(said.labels, said.excluded, said.weights, tree)
    return replace(said, labels=tuple(labels), excluded=tuple(excluded), weights=weights)


def _classes(
    labels: Sequence[str], excluded: Sequence[str], weights: Mapping[str, float], tree: Tree
) -> tuple[list[str], list[str], dict[str, float]]:
    """What labels stand for, but for what is excluded: some rose, and not the dog rose."""
    out = tree.classes_for(excluded)
    kept = [name for name in tree.classes_for(labels) if name not in out]
    return kept, out, {name: weight for name, weight in tree.weights_for(weights).items() if name in kept}


def _excluded(statements: Sequence[Statement], named: Mapping[str, int]) -> list[str]:
    """What nobody thinks possible: of several who only exclude, each leaves all other labels open."""
    if named:  # a label that one excludes and another names stays, and labels that nobody names are out already
        return []
    sets = [each.excluded for each in statements if each.excluded]
    return [label for label in sets[0] if all(label in labels for labels in sets)] if sets else []


def _mean_weights(statements: Sequence[Statement], candidates: Sequence[str]) -> dict[str, float]:
    """The mean of what the annotators find likely, each counted by how sure they are; empty if nobody says so."""
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
    """Entries as arrays. Those that name an unknown label, or a label twice, are reported and left out.

    `named` says whether the entries have file names, and `voted` whether they count votes.
    """
    usable = [entry for entry in entries if _usable(entry, rules.report)]
    if classes is None and rules.tree is not None:
        classes = rules.tree.leaves
    elif classes is None:
        mentioned = {label for entry in usable for label in (*entry.candidates, *entry.excluded)}
        classes = tuple(sorted(mentioned, key=_natural))
    elif (bad := next((name for name in classes if "\0" in name), None)) is not None:
        raise UserError(f"{source} names the class {bad!r}, which contains a NUL: rename it.")
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
    """How many images have no label, `(N,) bool`, and how many have a known one; nothing if all have labels."""
    if not silent.any():
        return ()
    known = int((candidates.sum(1) == 1).sum())
    return (
        f"{int(silent.sum()):,} of {len(silent):,} rows of {source} are unlabelled, so that every class is possible; "
        f"{known:,} have one label, which counts as known.",
    )


def _known(entry: Entry, classes: tuple[str, ...], place: Mapping[str, int], report: Report) -> bool:
    """Whether all labels of an entry are classes; reports the first that is none."""
    # A training row without candidates is refused for that, whatever its label is.
    label = entry.label if entry.candidates or entry.excluded or entry.split == "test" else None
    mentioned = [*entry.candidates, *entry.excluded, *([label] if label else [])]
    stranger = next((label for label in mentioned if label not in place), None)
    if stranger is not None:
        report(f"{entry.where}: {unknown('label', stranger, classes)}")
    return stranger is None


def _votes(entries: Sequence[Entry], place: Mapping[str, int]) -> np.ndarray:
    """How many named each label, `(N, K) int64`."""
    votes = np.zeros((len(entries), len(place)), np.int64)
    for row, entry in enumerate(entries):
        for label, count in entry.votes.items():
            if label in place:
                votes[row, place[label]] = count
    return votes


def _weights(entries: Sequence[Entry], place: Mapping[str, int], candidates: np.ndarray) -> np.ndarray | None:
    """How likely each candidate is, `(N, K) float64`, the same for all where nothing is said; None without weights."""
    if not any(entry.weights for entry in entries):
        return None
    weights = candidates.astype(np.float64)
    for row, entry in enumerate(entries):
        if entry.weights:
            weights[row] = 0
            weights[row, [place[label] for label in entry.weights]] = list(entry.weights.values())
    return weights


def _opinions(entries: Sequence[Entry], place: Mapping[str, int]) -> tuple[tuple[str, ...], np.ndarray | None]:
    """Who named what: the annotators, and rows of numbers `(S, 3)` of an entry, an annotator and a class."""
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
    """With every class possible in empty training rows, if that is the rule."""
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
    """The valid rows: each file once, training rows with candidates, and the true label among them if it is given."""
    keep, missing, seen = [], 0, dict[str, str]()
    for row, where in enumerate(found.where):
        label, test = found.labels[row], found.test[row]
        if found.file_names is not None:
            name = posixpath.normpath(found.file_names[row])  # ./a.png is a.png
            if name in seen:
                rules.report(f"{where} is about {found.file_names[row]!r}, as is {seen[name]}: one row for each file.")
                continue
            seen[name] = where
        if not test and not found.candidates[row].any():
            rules.report(
                f"{where}: no label has enough votes: every training image needs a candidate."
                if found.votes is not None
                else f"{where}: its candidate set is empty: name candidates, or let it be anything with "
                "--candidates.empty unlabelled."
            )
            continue
        if test and label < 0:
            rules.report(f"{where} is a test row without a true label: give one, or leave the row out.")
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
        note = f"{missing} of {len(keep)} rows of {found.source} have a true label that is not among the candidates."
        result = replace(result, notes=(*result.notes, note))
    return result


def _usable(entry: Entry, report: Report) -> bool:
    """Whether an entry can be encoded; reports why not."""
    mentioned = [*entry.candidates, *entry.excluded, entry.label or ""]
    twice = first_twice(entry.candidates)
    unwritable = next((label for label in mentioned if "\0" in label or not is_utf8(label)), None)
    both = next((label for label in entry.candidates if label in entry.excluded), None)
    if twice is not None:
        report(f"{entry.where} lists the candidate {twice!r} twice.")
    elif both is not None:
        report(f"{entry.where} names {both!r} and excludes it: take it out of one of the two.")
    elif "" in entry.candidates or "" in entry.excluded:
        listed = "|".join(entry.candidates or entry.excluded)
        report(f"{entry.where} has an empty name among its candidates: {shortened(listed)}.")
    elif unwritable is not None:
        what = "contains a NUL" if "\0" in unwritable else "is no text in UTF-8"
        report(f"{entry.where} names the class {unwritable!r}, which {what}: rename it.")
    elif entry.split not in SPLITS:
        report(f"{entry.where}: {unknown('split', entry.split, SPLITS)}")
    else:
        return True
    return False


def _natural(name: str) -> tuple[bool, int, str]:
    """Sorts numbers by value, before texts. Python refuses to convert more digits than these."""
    return (False, int(name), name) if name.isdecimal() and len(name) <= 1000 else (True, 0, name)
