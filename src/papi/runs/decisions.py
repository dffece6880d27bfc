"""A person's decisions about doubtful images: the possible answers, and the table that stores them."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from papi.data.dataset import refuse
from papi.data.own.tables import Row, join_labels, read_table, split_labels
from papi.errors import UserError, unknown
from papi.files.spreadsheets import cell, text_of

Kind = Literal["label", "several", "none", "bad", "skip"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COLUMNS = ("index", "file", "label", "answer", "note")
NOTE_LENGTH = 1000  # characters
_DIGITS = 18  # of an index; Python refuses to parse very long numbers


@dataclass(frozen=True)
class Answer:
    """A person's answer about one image.

    One `label` is right, `several` labels are possible, `none` of the candidates is right, the image is `bad` (nothing
    can be learned from it), or the person wants to `skip` it.
    """

    kind: Kind
    labels: tuple[int, ...] = ()  # one for `label`, two or more for `several`, sorted; otherwise none
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        fits = {"label": len(self.labels) == 1, "several": len(self.labels) > 1}.get(self.kind, not self.labels)
        if not fits or list(self.labels) != sorted(set(self.labels)):
            raise ValueError(f"the answer {self.kind!r} cannot have {len(self.labels)} labels")

    def contradicts(self, label: int) -> bool | None:
        """Return whether the answer contradicts a label; None if the image was skipped."""
        return None if self.kind == "skip" else label not in self.labels

    def words(self, classes: Sequence[str]) -> str:
        """Return the answer for a message."""
        return repr(join_labels([classes[k] for k in self.labels])) if self.labels else f"{self.kind!r}"


Answers = Mapping[int, Answer]
"""Answers by training image, in the order in which they were given."""


def read_decisions(
    path: Path, count: int, classes: tuple[str, ...], files: tuple[str, ...] | None
) -> dict[int, Answer]:
    """Read the answers in a table. Raise `UserError` if it contains no decisions."""
    answers = read_answers(path, count, classes, files)
    if all(answer.kind == "skip" for answer in answers.values()):
        raise UserError(f"{path} contains no decisions: decide at least one image.")
    return answers


def read_answers(path: Path, count: int, classes: tuple[str, ...], files: tuple[str, ...] | None) -> dict[int, Answer]:
    """Read a table with the columns `index`, `file` or both, and `label`, as saved by the page of `papi report`.

    `answer` is the kind of answer; without such a column, or if its cell is empty, a row has one label. `note` is free
    text. Other columns are ignored.
    """
    table = read_table(path, refuse)
    if "answer" not in table.columns:
        table.require("label")
    if not {"index", "file"} & set(table.columns):
        raise UserError(f"{path} does not identify the images: add a column index or file.")
    place = {name: row for row, name in enumerate(files or ())}
    number = {name: k for k, name in enumerate(classes)}
    found: dict[int, Answer] = {}
    said: dict[int, str] = {}  # where
    for row in table.rows:
        answer = _answer(row, number)
        image = _image(row, count, place, files)
        before = found.setdefault(image, answer)
        if before != answer:
            raise UserError(
                f"{row.where} calls image {image} {answer.words(classes)}, and {said[image]} calls it "
                f"{before.words(classes)}: keep one."
            )
        said.setdefault(image, row.where)
    return found


def table_of(answers: Answers, classes: Sequence[str], files: Sequence[str] | None) -> bytes:
    """Write answers as a csv file for `read_answers`. Text that looks like a formula begins with a single quote."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for image, answer in answers.items():
        label = join_labels([classes[k] for k in answer.labels]) if answer.kind == "several" else ""
        label = classes[answer.labels[0]] if answer.kind == "label" else label
        values = (str(image), "" if files is None else files[image], label, answer.kind, answer.note)
        writer.writerow([cell(value) for value in values])
    return stream.getvalue().encode()


def _text(row: Row, column: str) -> str:
    value = row.values.get(column)
    return "" if value is None else str(value)


def _answer(row: Row, number: Mapping[str, int]) -> Answer:
    """Parse the answer of a row."""
    kind, label = _text(row, "answer").strip() or "label", _text(row, "label")
    note = text_of(_text(row, "note"))[:NOTE_LENGTH]
    if kind not in KINDS:
        raise UserError(f"{row.where}: {unknown('answer', kind, KINDS)}")
    if kind == "label":
        return Answer("label", (_class(label, number, row),), note)
    if kind == "several":
        labels = sorted({_class(name, number, row) for name in _named(label, number)})
        if len(labels) < 2:
            raise UserError(
                f"{row.where} has the answer 'several' with fewer than two labels: write them as `cat|dog`."
            )
        return Answer("several", tuple(labels), note)
    if label.strip():
        raise UserError(f"{row.where} has the answer {kind!r} and the label {label!r}: keep one.")
    return Answer(kind, (), note)


def _named(label: str, number: Mapping[str, int]) -> list[str]:
    """Return the labels in a cell, which may have a quote for spreadsheets."""
    plain = split_labels(label) or []
    return plain if all(name in number for name in plain) else split_labels(text_of(label)) or []


def _class(label: str, number: Mapping[str, int], row: Row) -> int:
    label = label if label in number else text_of(label)
    if label not in number:
        raise UserError(f"{row.where}: {unknown('label', label, tuple(number))}")
    return number[label]


def _image(row: Row, count: int, place: dict[str, int], files: tuple[str, ...] | None) -> int:
    """Return the training image of a row; index and file must agree if both are given."""
    index, file = _text(row, "index").strip(), _text(row, "file")
    file = file if file in place else file.strip()
    if file and files is None:
        raise UserError(
            f"{row.where} names the file {file!r}, but the images of this run have no file names: use an index."
        )
    file = file if file in place else text_of(file)
    if file and file not in place:
        raise UserError(f"{row.where} names {file!r}, which is not a training image of this run: check its spelling.")
    if not index and not file:
        raise UserError(f"{row.where} has neither index nor file: add one.")
    if not index:
        return place[file]
    if not index.isdecimal() or len(index) > _DIGITS or int(index) >= count:
        raise UserError(f"{row.where} has the index {index!r}: training images are numbered from 0 to {count - 1}.")
    if file and place[file] != int(index):
        raise UserError(f"{row.where} has the index {index}, but {file!r} is image {place[file]}: correct one of them.")
    return int(index)


def fixed_folder(parent: Path) -> Path:
    """Return the default folder of a run with decisions: `x-fixed` next to `x`, then `x-fixed2` …"""
    parent = parent.resolve()
    stem, number = re.fullmatch(r"(.*?)(?:-fixed(\d*))?", parent.name, re.DOTALL).groups()  # type: ignore[union-attr]
    return parent.with_name(f"{stem}-fixed" if number is None else f"{stem}-fixed{int(number or 1) + 1}")
