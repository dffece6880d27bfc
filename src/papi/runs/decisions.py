"""A person's decisions about doubtful images."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papi.data.dataset import refuse
from papi.data.own.tables import Row, read_table
from papi.errors import UserError, unknown
from papi.files.spreadsheets import text_of
from papi.runs.labels import candidate_shares

_DIGITS = 18  # of an index: longer numbers count nothing, and Python refuses to read very long ones


@dataclass(frozen=True)
class Decisions:
    """Which label a person gave to which training images."""

    rows: np.ndarray  # (D,) int64, rising
    labels: np.ndarray  # (D,) int64

    def fixed_sets(self, candidates: np.ndarray) -> np.ndarray:
        """The sets `(N, K) bool` with a single candidate where there is a decision."""
        fixed: np.ndarray = candidates.copy()
        fixed[self.rows] = False
        fixed[self.rows, self.labels] = True
        return fixed

    def fixed_confidence(self, candidates: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        """The confidence `(N, K) float32` in the fixed sets: all of it on the label that was decided on."""
        fixed = np.where(candidates, confidence, 0).astype(np.float32)
        doubted = np.where(candidates, 0, confidence).any(1)  # some belief went to labels outside the set
        fixed[doubted] = candidate_shares(candidates[doubted], confidence[doubted])
        fixed[self.rows] = 0
        fixed[self.rows, self.labels] = 1
        return fixed

    def notes(self, candidates: np.ndarray) -> tuple[str, ...]:
        """What a person should know before training on with them."""
        outside = int((~candidates[self.rows, self.labels]).sum())
        told = f"{outside} of {len(self.rows)} decisions are for a label that was not among the candidates."
        return (told,) if outside else ()


def read_decisions(path: Path, count: int, classes: tuple[str, ...], files: tuple[str, ...] | None) -> Decisions:
    """A table with the columns `label` and `index`, `file` or both, as the page of `papi report` writes it."""
    table = read_table(path, refuse)
    table.require("label")
    if not {"index", "file"} & set(table.columns):
        raise UserError(f"{path} names no images: it needs a column index or file beside the labels.")
    place = {name: row for row, name in enumerate(files or ())}
    number = {name: k for k, name in enumerate(classes)}
    found: dict[int, tuple[int, str]] = {}  # row of the image → label, and where that is said
    for row in table.rows:
        label = str(row.values.get("label") or "")
        label = label if label in number else text_of(label)
        if label not in number:
            raise UserError(f"{row.where}: {unknown('label', label, classes)}")
        image = _image(row, count, place, files)
        before = found.setdefault(image, (number[label], row.where))
        if before[0] != number[label]:
            raise UserError(
                f"{row.where} calls image {image} {label!r}, and {before[1]} calls it {classes[before[0]]!r}: keep one."
            )
    if not found:
        raise UserError(f"{path} holds no decisions: there is nothing to train on.")
    rows = np.array(sorted(found), np.int64)
    return Decisions(rows, np.array([found[image][0] for image in rows.tolist()], np.int64))


def _image(row: Row, count: int, place: dict[str, int], files: tuple[str, ...] | None) -> int:
    """The training image a row is about; index and file must agree where both are given."""
    index, file = (str("" if row.values.get(name) is None else row.values[name]).strip() for name in ("index", "file"))
    if file and files is None:
        raise UserError(
            f"{row.where} names the file {file!r}, and the images of this run have no files: give an index."
        )
    file = file if file in place else text_of(file)
    if file and file not in place:
        raise UserError(f"{row.where} names {file!r}, which is no training image of this run: check its spelling.")
    if not index and not file:
        raise UserError(f"{row.where} has neither index nor file: which image is it about?")
    if not index:
        return place[file]
    if not index.isdecimal() or len(index) > _DIGITS or int(index) >= count:
        raise UserError(f"{row.where} has the index {index!r}: training images are counted from 0 to {count - 1}.")
    if file and place[file] != int(index):
        raise UserError(f"{row.where} has the index {index}, but {file!r} is image {place[file]}: correct one of them.")
    return int(index)


def fixed_folder(parent: Path) -> Path:
    """Where a run with decisions goes unless a person says otherwise: `x-fixed` beside `x`, then `x-fixed2` …"""
    parent = parent.resolve()
    stem, number = re.fullmatch(r"(.*?)(?:-fixed(\d*))?", parent.name, re.DOTALL).groups()  # type: ignore[union-attr]
    return parent.with_name(f"{stem}-fixed" if number is None else f"{stem}-fixed{int(number or 1) + 1}")
