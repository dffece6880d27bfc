"""Candidate sets as arrays: the common form of all formats, and the reader of .npz files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from papi.data.own.tables import is_utf8
from papi.data.own.votes import MOST_VOTES, enough_votes, refuse_rule, require_votes
from papi.data.own.weights import shares
from papi.data.packed_rows import parts_of
from papi.errors import UserError, missing, unknown
from papi.files.npz import read_npz
from papi.files.reading import reason

SPLITS = ("train", "test")
SETS = ("candidates", "counts", "weights", "probabilities")  # arrays (N, K) that candidate sets are made from
_MOST_CLASSES = 100_000  # a larger label is a mistake, and every class takes memory


@dataclass(frozen=True)
class Annotations:
    """Candidate sets and further information about each row. Rows of the test split need no candidates."""

    source: str  # the file, for messages
    where: tuple[str, ...]  # the place of each row, for messages
    class_names: tuple[str, ...]
    candidates: np.ndarray  # (N, K) bool
    labels: np.ndarray  # (N,) int64, -1 if unknown
    test: np.ndarray  # (N,) bool
    file_names: tuple[str, ...] | None = None  # None: rows are in the order of the images
    votes: np.ndarray | None = None  # (N, K), how many annotators named each label
    notes: tuple[str, ...] = ()
    named: frozenset[str] | None = (
        frozenset()
    )  # files of all rows, including rows with problems; None: not all are known
    loose: bool = False  # file names come from a tool: leading folders and prefixes may not exist on disk
    weights: np.ndarray | None = None  # (N, K) float32: probability of each candidate; rows sum to one, zero outside
    annotators: tuple[str, ...] = ()
    opinions: np.ndarray | None = None  # (S, 3) int64, single answers: row, annotator, class

    def followed_by(self, other: "Annotations") -> "Annotations":
        """Concatenate the rows of two annotations with the same classes."""
        both, named = (self.votes, other.votes), (self.named, other.named)
        known = {name: number for number, name in enumerate(dict.fromkeys(self.annotators + other.annotators))}
        return replace(
            self,
            where=self.where + other.where,
            candidates=np.concatenate((self.candidates, other.candidates)),
            labels=np.concatenate((self.labels, other.labels)),
            test=np.concatenate((self.test, other.test)),
            file_names=None if self.file_names is None else self.file_names + (other.file_names or ()),
            votes=None if both[0] is None or both[1] is None else np.concatenate((both[0], both[1])),
            notes=self.notes + other.notes,
            named=None if named[0] is None or named[1] is None else named[0] | named[1],
            weights=_joined_weights(self, other),
            annotators=tuple(known),
            opinions=_joined_opinions(self, other, known),
        )

    def positions(self, where: Sequence[str]) -> np.ndarray:
        """Return the positions of the rows with these places."""
        places = {place: row for row, place in enumerate(self.where)}
        return np.array([places[place] for place in where], np.int64)

    def taking(self, rows: np.ndarray) -> "Annotations":
        """Select these rows, in this order."""
        return replace(
            self,
            where=tuple(self.where[row] for row in rows),
            candidates=self.candidates[rows],
            labels=self.labels[rows],
            test=self.test[rows],
            file_names=None if self.file_names is None else tuple(self.file_names[row] for row in rows),
            votes=None if self.votes is None else self.votes[rows],
            weights=None if self.weights is None else self.weights[rows],
            opinions=None if self.opinions is None else _taken_opinions(self.opinions, len(self.where), rows),
        )


def _taken_opinions(opinions: np.ndarray, count: int, rows: np.ndarray) -> np.ndarray:
    """Select the opinions on these of `count` rows and renumber the rows."""
    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))
    taken: np.ndarray = opinions[place[opinions[:, 0]] >= 0]
    taken[:, 0] = place[taken[:, 0]]
    return taken


def _joined_opinions(first: Annotations, second: Annotations, known: dict[str, int]) -> np.ndarray | None:
    parts = []
    for each, start in ((first, 0), (second, len(first.where))):
        if each.opinions is not None:
            numbers = np.array([known[name] for name in each.annotators], np.int64)
            row, annotator, label = each.opinions.T
            parts.append(np.stack((row + start, numbers[annotator], label), 1))
    return np.concatenate(parts) if parts else None


def _joined_weights(first: Annotations, second: Annotations) -> np.ndarray | None:
    """Concatenate weights. If one part has none, its candidates are equally likely."""
    if first.weights is None and second.weights is None:
        return None
    return np.concatenate([each.weights if each.weights is not None else _uniform(each) for each in (first, second)])


def _uniform(found: Annotations) -> np.ndarray:
    count = found.candidates.sum(1, keepdims=True).clip(min=1)
    uniform: np.ndarray = (found.candidates / count).astype(np.float32)
    return uniform


def from_arrays(
    arrays: dict[str, np.ndarray], path: Path, classes: tuple[str, ...] | None, rule: str, threshold: float = 0.0
) -> Annotations:
    """Convert the arrays of a file: `candidates` (0/1), `counts` (votes) or `weights` (also called `probabilities`),
    all N x K, and optional arrays about the same rows. Weights next to candidates give their probabilities."""
    candidates, votes, weights = _sets(arrays, path, rule, threshold)
    names = class_names(arrays, path) or classes or tuple(str(k) for k in range(candidates.shape[1]))
    if len(names) != candidates.shape[1]:
        raise UserError(
            f"{path} has {candidates.shape[1]} columns of candidates for {len(names)} classes: use one per class."
        )
    if classes is not None and names != classes:
        stranger = next((name for name in names if name not in classes), None)
        problem = unknown("label", stranger, classes) if stranger else f"the order must be {', '.join(classes)}."
        raise UserError(f"class_names in {path}: {problem}")
    count = len(candidates)
    labels, split = arrays.get("labels"), arrays.get("split")
    files = arrays.get("file_names")
    for name, array in (("labels", labels), ("split", split), ("file_names", files)):
        if array is not None and array.shape != (count,):
            raise UserError(
                f"{path} has {count} rows of candidates, but {name} has shape {array.shape}: use one entry per row."
            )
    if split is not None and set(split.tolist()) - set(SPLITS):
        raise UserError(f"{path}: {unknown('split', str((set(split.tolist()) - set(SPLITS)).pop()), SPLITS)}")
    return Annotations(
        str(path),
        tuple(f"{path}, row {row}" for row in range(1, count + 1)),
        names,
        candidates,
        np.full(count, -1)
        if labels is None
        else checked_labels(labels, count, len(names), f"labels of {path}", least=-1),
        np.zeros(count, bool) if split is None else split == "test",
        None if files is None else tuple(str(name) for name in files),
        votes,
        weights=weights,
    )


_Sets = tuple[np.ndarray, np.ndarray | None, np.ndarray | None]


def _sets(arrays: dict[str, np.ndarray], path: Path, rule: str, threshold: float) -> _Sets:
    """Return the candidate sets, and the votes or weights of the arrays."""
    weighed = [name for name in ("weights", "probabilities") if name in arrays]
    alone = weighed if len(weighed) > 1 else [*weighed, "counts"] if weighed and "counts" in arrays else []
    if alone:
        raise UserError(f"{path} has both {alone[0]} and {alone[1]}: leave one out.")
    if "counts" in arrays:
        votes = _checked_numbers(arrays, "counts", path)
        require_votes(int(votes.max(initial=0)), rule, str(path))
        return enough_votes(votes, rule, str(path)), votes, None
    refuse_rule(rule, str(path))
    if not weighed:
        return _checked_numbers(arrays, "candidates", path) > 0, None, None
    weights = _checked_numbers(arrays, weighed[0], path).astype(np.float64)
    candidates = _checked_numbers(arrays, "candidates", path) > 0 if "candidates" in arrays else weights > 0
    if candidates.shape != weights.shape:
        raise UserError(
            f"{path} has candidates of shape {candidates.shape} but {weighed[0]} of shape {weights.shape}: make them "
            "equal."
        )
    lost = np.flatnonzero(candidates.any(1) & ~(candidates & (weights > 0)).any(1))
    if len(lost):
        raise UserError(
            f"{path}: row {lost[0] + 1} of {weighed[0]} has no value above zero for its candidates: add one."
        )
    kept, part = shares(candidates, weights, threshold)
    return kept, None, part


def _checked_numbers(arrays: dict[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    """Return an array `(N, K)` after checking its numbers."""
    if name not in arrays:
        raise missing(path, "array", name, arrays)
    numbers = arrays[name]
    needed = {"candidates": "0 or 1", "counts": "whole numbers of votes"}.get(name, "numbers of zero or more")
    if numbers.ndim != 2 or numbers.dtype.kind not in "biuf":
        raise UserError(
            f"{name} in {path} must be an N x K array of {needed}; got {numbers.dtype} of shape {numbers.shape}."
        )
    for part in parts_of(*numbers.shape):
        wide = numbers[part].astype(np.float64)  # half precision cannot represent the limits
        if name == "candidates":
            fits = (wide == 0) | (wide == 1)
        elif name == "counts":
            fits = (wide >= 0) & (wide <= MOST_VOTES) & (wide == np.floor(wide))
        else:
            fits = (wide >= 0) & (wide < np.inf)
        if not fits.all():
            row, column = np.argwhere(~fits)[0]
            row += part.start
            raise UserError(f"{path}: row {row + 1} of {name} must contain {needed}; got {numbers[row, column]}.")
    return numbers


def class_names(arrays: dict[str, np.ndarray], path: Path) -> tuple[str, ...] | None:
    """Return the class names in the arrays of a file; None if there are none."""
    given = arrays.get("class_names")
    if given is None:
        return None
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "Uiu":
        raise UserError(f"class_names in {path} must be a list of strings; got {given.dtype} of shape {given.shape}.")
    names = tuple(str(name) for name in given)
    require_distinct(names, str(path))
    for number, name in enumerate(names, 1):
        if not name.strip() or not is_utf8(name) or "\0" in name:
            raise UserError(f"name {number} of class_names in {path} must be a non-empty UTF-8 string; got {name!r}.")
    return names


def numbered_classes(labels: np.ndarray, what: str) -> tuple[str, ...]:
    """Return the names 0 … K - 1 for the classes of labels without names."""
    row = int(labels.argmax())
    largest = int(labels.flat[row])
    if largest >= _MOST_CLASSES:
        raise UserError(
            f"row {row + 1} of {what} must be below {_MOST_CLASSES:,}; got {largest}: count classes from 0."
        )
    return tuple(str(k) for k in range(largest + 1))


def require_distinct(names: Sequence[str], where: str) -> None:
    """Raise `UserError` if a class is listed twice."""
    twice = first_twice(names)
    if twice is not None:
        raise UserError(f"{where} lists the class {twice!r} twice: remove one.")


def first_twice(names: Sequence[str]) -> str | None:
    """Return the first repeated name; None if all differ."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file. Objects are rejected because they could run code."""
    try:
        return read_npz(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({reason(error)}): save it with numpy.savez, without objects."
        ) from error


def checked_labels(labels: np.ndarray, count: int, classes: int, what: str, least: int = 0) -> np.ndarray:
    """Return true labels as `(N,) int64` after checking their range."""
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise UserError(f"{what} must be {count} integers; got {labels.dtype} of shape {labels.shape}.")
    wrong = np.flatnonzero((labels < least) | (labels >= classes))
    if len(wrong):
        raise UserError(f"row {wrong[0] + 1} of {what} must be 0 to {classes - 1}; got {labels[wrong[0]]}.")
    return labels.astype(np.int64)
