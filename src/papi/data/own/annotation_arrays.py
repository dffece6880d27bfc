"""Candidate sets as arrays: the form that every format is converted to, and .npz files, which hold it already."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from papi.data.own.tables import is_utf8
from papi.data.own.votes import MOST_VOTES, least_votes, refuse_rule, require_votes
from papi.errors import UserError, unknown
from papi.files.npz import read_npz
from papi.files.reading import reason

SPLITS = ("train", "test")
_MOST_CLASSES = 100_000  # a label far beyond is a mistake, and every class takes memory


@dataclass(frozen=True)
class Annotations:
    """Candidate sets and what is known about each row. Rows of the test split need no candidates."""

    source: str  # the file, for messages
    where: tuple[str, ...]  # the place of each row, for messages
    class_names: tuple[str, ...]
    candidates: np.ndarray  # (N, K) bool
    labels: np.ndarray  # (N,) int64, -1 where not given
    test: np.ndarray  # (N,) bool
    file_names: tuple[str, ...] | None = None  # None: rows are in the order of the images
    votes: np.ndarray | None = None  # (N, K), how many annotators named each label
    notes: tuple[str, ...] = ()
    named: frozenset[str] | None = frozenset()  # files of all rows, also of rows with problems; None: not all are known

    def followed_by(self, other: "Annotations") -> "Annotations":
        """The rows of both, which have the same classes."""
        both, named = (self.votes, other.votes), (self.named, other.named)
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
        )

    def taking(self, rows: np.ndarray) -> "Annotations":
        """These rows, in this order."""
        return replace(
            self,
            where=tuple(self.where[row] for row in rows),
            candidates=self.candidates[rows],
            labels=self.labels[rows],
            test=self.test[rows],
            file_names=None if self.file_names is None else tuple(self.file_names[row] for row in rows),
            votes=None if self.votes is None else self.votes[rows],
        )


def from_arrays(arrays: dict[str, np.ndarray], path: Path, classes: tuple[str, ...] | None, rule: str) -> Annotations:
    """From `candidates` (0/1) or `counts` (votes), N x K, and the other arrays of a file about the same rows."""
    counts = _checked_counts(arrays, path)
    voted = "counts" in arrays
    if voted:
        require_votes(int(counts.max(initial=0)), rule, str(path))
    else:
        refuse_rule(rule, str(path))
    names = class_names(arrays, path) or classes or tuple(str(k) for k in range(counts.shape[1]))
    if len(names) != counts.shape[1]:
        raise UserError(f"{path} has {counts.shape[1]} columns of candidates for {len(names)} classes.")
    if classes is not None and names != classes:
        stranger = next((name for name in names if name not in classes), None)
        problem = unknown("label", stranger, classes) if stranger else f"the order must be {', '.join(classes)}."
        raise UserError(f"class_names of {path}: {problem}")
    count = len(counts)
    labels, split = arrays.get("labels"), arrays.get("split")
    files = arrays.get("file_names")
    for name, array in (("labels", labels), ("split", split), ("file_names", files)):
        if array is not None and array.shape != (count,):
            raise UserError(f"{path} has {count} rows of candidates and {name} of shape {array.shape}.")
    if split is not None and set(split.tolist()) - set(SPLITS):
        raise UserError(f"{path}: {unknown('split', str((set(split.tolist()) - set(SPLITS)).pop()), SPLITS)}")
    return Annotations(
        str(path),
        tuple(f"{path}, row {row}" for row in range(1, count + 1)),
        names,
        counts >= least_votes(rule, str(path)),
        np.full(count, -1)
        if labels is None
        else checked_labels(labels, count, len(names), f"labels of {path}", least=-1),
        np.zeros(count, bool) if split is None else split == "test",
        None if files is None else tuple(str(name) for name in files),
        counts if voted else None,
    )


def _checked_counts(arrays: dict[str, np.ndarray], path: Path) -> np.ndarray:
    """`counts` (votes) if there are any, else `candidates` (0/1)."""
    name = "counts" if "counts" in arrays else "candidates"
    if name not in arrays:
        raise UserError(f"{path} lacks an array: {unknown('array', name, arrays)}")
    counts = arrays[name]
    needed = "0 and 1" if name == "candidates" else "whole numbers of votes"
    if counts.ndim != 2 or counts.dtype.kind not in "biuf":
        raise UserError(
            f"the {name} of {path} are {counts.dtype} of shape {counts.shape}: N x K of {needed} is needed."
        )
    if name == "candidates":
        fits = (counts == 0) | (counts == 1)
    else:
        wide = counts.astype(np.float64)  # half precision has no number as large as the limit
        fits = (wide >= 0) & (wide <= MOST_VOTES) & (wide == np.floor(wide))
    if not fits.all():
        row, column = np.argwhere(~fits)[0]
        raise UserError(f"{path}: row {row + 1} of {name} has {counts[row, column]}: {needed} are needed.")
    return counts


def class_names(arrays: dict[str, np.ndarray], path: Path) -> tuple[str, ...] | None:
    """The names of the classes in the arrays of a file; None if it does not name them."""
    given = arrays.get("class_names")
    if given is None:
        return None
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "Uiu":
        raise UserError(f"class_names of {path} are {given.dtype} of shape {given.shape}: a list of texts is needed.")
    names = tuple(str(name) for name in given)
    require_distinct(names, str(path))
    for number, name in enumerate(names, 1):
        if not name.strip() or not is_utf8(name) or "\0" in name:
            raise UserError(f"name {number} of the class_names of {path} is {name!r}: a text in UTF-8 is needed.")
    return names


def numbered_classes(labels: np.ndarray, what: str) -> tuple[str, ...]:
    """The classes 0 … K - 1 of labels that nothing names."""
    row = int(labels.argmax())
    largest = int(labels.flat[row])
    if largest >= _MOST_CLASSES:
        raise UserError(f"row {row + 1} of {what} is {largest}: number the classes from 0; {_MOST_CLASSES:,} can be.")
    return tuple(str(k) for k in range(largest + 1))


def require_distinct(names: Sequence[str], where: str) -> None:
    """Stop if a class is named twice."""
    twice = first_twice(names)
    if twice is not None:
        raise UserError(f"{where} names {twice!r} twice.")


def first_twice(names: Sequence[str]) -> str | None:
    """The first name that has occurred before; None if all differ."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, which may hold no objects: those could run code."""
    try:
        return read_npz(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read: {reason(error)}. Write it with numpy.savez, without objects."
        ) from error


def checked_labels(labels: np.ndarray, count: int, classes: int, what: str, least: int = 0) -> np.ndarray:
    """True labels as `(N,) int64`, each in the range of the classes."""
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise UserError(f"{what} are {labels.dtype} of shape {labels.shape}: {count} integers are needed.")
    wrong = np.flatnonzero((labels < least) | (labels >= classes))
    if len(wrong):
        raise UserError(f"row {wrong[0] + 1} of {what} is {labels[wrong[0]]}: the classes are 0 to {classes - 1}.")
    return labels.astype(np.int64)
