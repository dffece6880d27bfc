"""The candidate sets of users: a csv, jsonl or parquet table, or arrays, become one `(N, K) bool`.

A row names a file and its candidates: as a list, as one text with `|` between, or with a column for each class (0 or 1,
or how many annotators voted for it). A table with an `annotator` column holds one vote, or one list of labels, a row.
"""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from reprlib import repr as shortened

import numpy as np

from papi.data.dataset import Report, refuse
from papi.data.own.annotation_arrays import SPLITS, Annotations, first_twice, from_arrays, load_npz
from papi.data.own.tables import Row, Table, cell_number, read_table, split_labels
from papi.data.own.votes import MOST_VOTES, agreed, least_votes, refuse_rule, require_votes
from papi.errors import UserError, unknown

_LOOK_AHEAD = 1000  # rows in which a table with a column for each class must show itself as one
RESERVED = ("file_name", "candidates", "label", "split", "annotator", "true_label")


@dataclass
class _Entry:
    """What a table says about one image."""

    where: str
    file_name: str | None
    candidates: list[str] = field(default_factory=list)
    label: str | None = None
    split: str = "train"
    votes: Mapping[str, int] = field(default_factory=dict)  # how many named each label


@dataclass(frozen=True)
class Rules:
    """How candidate sets are to be read."""

    votes: str = "union"  # how votes become candidate sets: union, at-least-N or vaguest
    allow_missing_truth: bool = False
    report: Report = refuse


def read_annotations(
    path: Path, rules: Rules, classes: tuple[str, ...] | None = None, *, by_name: bool = True
) -> Annotations:
    """The candidate sets in a file. Without `classes`, they are found in the file; `by_name` requires file names."""
    if path.suffix.lower() == ".npz":
        arrays = from_arrays(load_npz(path), path, classes, rules.votes)
        found = replace(checked(arrays, rules), named=frozenset(arrays.file_names or ()))
    else:
        unread: list[str] = []

        def report(problem: str) -> None:
            unread.append(problem)
            rules.report(problem)

        table = read_table(path, report)
        if by_name:
            table.require("file_name")
        names = frozenset(_text(row, "file_name") or "" for row in table.rows)
        found = replace(from_table(table, rules, classes), named=None if unread else names)
    if by_name and found.file_names is None:
        raise UserError(f"{path} has no file_names: give the file of each row, in the order of the candidates.")
    return found


def from_table(table: Table, rules: Rules, classes: tuple[str, ...] | None = None) -> Annotations:
    """The candidate sets of a table in any of its forms."""
    if not table.rows:
        raise UserError(f"{table.path} has no usable rows: write one for each sample.")
    if "annotator" in table.columns:
        entries = list(_vote_entries(table, rules.votes, rules.report))
    elif "candidates" in table.columns:
        refuse_rule(rules.votes, str(table.path))
        entries = list(_list_entries(table, rules.report))
    else:
        entries = list(_column_entries(table, rules.votes, rules.report))
        classes = classes or tuple(name for name in table.columns if name not in RESERVED)
    most = max((count for entry in entries for count in entry.votes.values()), default=0)
    require_votes(most, rules.votes, str(table.path))
    return checked(_encode(table, entries, classes, rules.report), rules)


def _list_entries(table: Table, report: Report) -> Iterator[_Entry]:
    """Rows with all candidates of an image in one cell."""
    for row in table.rows:
        labels = split_labels(row.values.get("candidates"))
        if labels is None:
            got = shortened(row.values["candidates"])
            report(f"{row.where} has candidates that are no list of labels: {got}.")
        else:
            yield _Entry(row.where, _text(row, "file_name"), labels, _text(row, "label"), _split(row))


def _vote_entries(table: Table, rule: str, report: Report) -> Iterable[_Entry]:
    """Rows with what one annotator says about one image, gathered by image."""
    for column in ("file_name", "label"):
        table.require(column)
    entries: dict[str, _Entry] = {}
    said: dict[str, dict[str, list[str]]] = {}  # file → annotator → labels
    for row in table.rows:
        name, annotator, labels = (
            _text(row, "file_name"),
            _text(row, "annotator"),
            split_labels(row.values.get("label")),
        )
        if name is None or annotator is None or not labels:
            report(f"{row.where} needs a file_name, an annotator and a label; got {shortened(dict(row.values))}.")
            continue
        mine = said.setdefault(name, {}).setdefault(annotator, [])
        twice = first_twice([*mine, *labels])
        if twice is not None:
            report(f"{row.where}: annotator {annotator!r} has named {twice!r} for {name!r} before; a vote counts once.")
            continue
        mine += labels
        entry = entries.setdefault(name, _Entry(row.where, name, split=_split(row)))
        entry.label = _text(row, "true_label") or entry.label
    for name, entry in entries.items():
        sets = list(said[name].values())
        entry.candidates = agreed(sets, rule)
        entry.votes = Counter(label for labels in sets for label in labels)
    return entries.values()


def _column_entries(table: Table, rule: str, report: Report) -> Iterator[_Entry]:
    """Rows with a column for each class: 0 or 1, or a number of votes."""
    names = [name for name in table.columns if name not in RESERVED]
    if len(names) < 2 or not any(_counts(row, names) for row in table.rows[:_LOOK_AHEAD]):
        table.require("candidates")  # a column of other things is a misspelt name, not a class
    if "" in names:
        raise UserError(f"{table.path} has a column without a name: name its class, or take it out.")
    least = least_votes(rule, str(table.path))
    for row in table.rows:
        counts = _counts(row, names)
        if counts is None:
            column = next(name for name in names if _count(row.values.get(name)) is None)
            got = shortened(row.values.get(column))
            report(f"{row.where} has {got} in the column {column!r}: 0, 1 or a number of votes is needed.")
            continue
        named = [name for name, count in counts.items() if count >= least]
        yield _Entry(row.where, _text(row, "file_name"), named, _text(row, "label"), _split(row), counts)


def _encode(table: Table, entries: Iterable[_Entry], classes: tuple[str, ...] | None, report: Report) -> Annotations:
    """Entries as arrays. Those that name an unknown label, or a label twice, are reported and left out."""
    usable = [entry for entry in entries if _usable(entry, report)]
    if classes is None:
        classes = tuple(sorted({label for entry in usable for label in entry.candidates}, key=_natural))
    elif (bad := next((name for name in classes if "\0" in name), None)) is not None:
        raise UserError(f"{table.path} names the class {bad!r}, which contains a NUL: rename it.")
    place = {name: k for k, name in enumerate(classes)}
    good: list[_Entry] = []
    for entry in usable:
        # A training row without candidates is refused for that, whatever its label is.
        label = entry.label if entry.candidates or entry.split == "test" else None
        named = [*entry.candidates, *([label] if label else [])]
        stranger = next((label for label in named if label not in place), None)
        if stranger is None:
            good.append(entry)
        else:
            report(f"{entry.where}: {unknown('label', stranger, classes)}")
    candidates = np.zeros((len(good), len(classes)), bool)
    for row, entry in enumerate(good):
        candidates[row, [place[label] for label in entry.candidates]] = True
    return Annotations(
        source=str(table.path),
        where=tuple(entry.where for entry in good),
        class_names=classes,
        candidates=candidates,
        labels=np.array([place.get(entry.label, -1) if entry.label else -1 for entry in good], np.int64),
        test=np.array([entry.split == "test" for entry in good], bool),
        file_names=tuple(entry.file_name or "" for entry in good) if "file_name" in table.columns else None,
        votes=_votes(good, place, "annotator" in table.columns),
    )


def _votes(entries: Sequence[_Entry], place: Mapping[str, int], by_annotator: bool) -> np.ndarray | None:
    """How many named each label, `(N, K) int64`; None if the entries do not count votes."""
    if not by_annotator and not any(count > 1 for entry in entries for count in entry.votes.values()):
        return None
    votes = np.zeros((len(entries), len(place)), np.int64)
    for row, entry in enumerate(entries):
        for label, count in entry.votes.items():
            if label in place:
                votes[row, place[label]] = count
    return votes


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
            why = "no label has enough votes" if found.votes is not None else "its candidate set is empty"
            rules.report(f"{where}: {why}: every training image needs a candidate.")
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


def _usable(entry: _Entry, report: Report) -> bool:
    """Whether an entry can be encoded; reports why not."""
    twice = first_twice(entry.candidates)
    nul = next((label for label in [*entry.candidates, entry.label or ""] if "\0" in label), None)
    if twice is not None:
        report(f"{entry.where} lists the candidate {twice!r} twice.")
    elif "" in entry.candidates:
        report(f"{entry.where} has an empty name among its candidates: {shortened('|'.join(entry.candidates))}.")
    elif nul is not None:
        report(f"{entry.where} names the class {nul!r}, which contains a NUL: rename it.")
    elif entry.split not in SPLITS:
        report(f"{entry.where}: {unknown('split', entry.split, SPLITS)}")
    else:
        return True
    return False


def _text(row: Row, column: str) -> str | None:
    """A cell as text; None if it is missing or empty."""
    value = row.values.get(column)
    # A list in the place of a text can be too deep to be written out.
    text = "" if value is None else shortened(value) if isinstance(value, list | dict) else str(value)
    return text.strip() or None


def _split(row: Row) -> str:
    return _text(row, "split") or "train"


def _counts(row: Row, names: Sequence[str]) -> dict[str, int] | None:
    """The votes of a row; None if a cell is not a number of votes."""
    counts = {name: _count(row.values.get(name)) for name in names}
    known = {name: count for name, count in counts.items() if count is not None}
    return known if len(known) == len(counts) else None


def _count(cell: object) -> int | None:
    """A cell as a number of votes; None if it is anything else."""
    number = 0.0 if cell is None or cell == "" else cell_number(cell)
    return int(number) if number is not None and 0 <= number <= MOST_VOTES and number.is_integer() else None


def _natural(name: str) -> tuple[bool, int, str]:
    """Sorts numbers by value, before texts. Python refuses to convert more digits than these."""
    return (False, int(name), name) if name.isdecimal() and len(name) <= 1000 else (True, 0, name)
