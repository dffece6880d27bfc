"""Reads large tables of candidate sets column by column with pyarrow, if it is installed.

This takes seconds for a million rows, without an object per cell. It supports only simple files: csv without quotes,
weights, votes or exclusions, in which every row is valid. For all other files it returns None, and the row reader takes
over, so results and messages are the same with and without pyarrow.
"""

import csv
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from papi.data.own.annotation_arrays import SPLITS, Annotations
from papi.data.own.encoding import in_order
from papi.data.own.entries import Rules
from papi.data.own.tables import ANYTHING, WEIGHED, delimiter_of, read_text
from papi.data.own.tools import crowd

LEAST_BYTES = 2**22  # smaller files are read faster than pyarrow is imported
_READ = ("file_name", "candidates", "label", "split")
_OTHERWISE = {"annotator", "excluded", "weights"}  # columns that change the meaning of a row


def read_columnwise(path: Path, rules: Rules, classes: tuple[str, ...] | None) -> Annotations | None:
    """Return the unchecked candidate sets of a large, simple csv file with a column `candidates`; otherwise None."""
    special = rules.column or rules.separator or rules.tree or rules.votes != "union" or rules.format == crowd.NAME
    if special or path.suffix.lower() not in (".csv", ".tsv") or not _is_large(path):
        return None
    pyarrow = _pyarrow()
    text = "" if pyarrow is None else read_text(path)
    if pyarrow is None or not _is_plain(text):
        return None
    first = text[: text.index("\n")].removesuffix("\r")
    delimiter = delimiter_of(path, first)
    columns = tuple(name.strip() for name in first.split(delimiter))
    if not _are_known(columns) or any("\0" in name for name in classes or ()):
        return None
    content = text.encode()
    del text  # as large as the file
    try:
        return _read(pyarrow, _batches(pyarrow, content, columns, delimiter), path, classes)
    except pyarrow.ArrowException:  # a row with more or fewer cells, or one longer than a block
        return None


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size >= LEAST_BYTES
    except OSError:  # the reader of rows says why it cannot be read
        return False


def _pyarrow() -> ModuleType | None:
    try:
        for name in ("compute", "csv"):
            import_module(f"pyarrow.{name}")
        return import_module("pyarrow")
    except ImportError:
        return None


def _is_plain(text: str) -> bool:
    """Whether every line is one row, without anything that readers of csv take in different ways."""
    if '"' in text or "\0" in text or text.count("\r") != text.count("\r\n"):
        return False
    content = np.frombuffer(text.encode(), np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    if not len(ends) or len(content) - ends[-1] > csv.field_size_limit():
        return False
    lengths = np.diff(ends, prepend=-1) - (2 if "\r" in text else 1)
    return bool(lengths.min() > 0 and lengths.max() <= csv.field_size_limit())


def _are_known(columns: tuple[str, ...]) -> bool:
    """Whether these are the columns of a table with one set a row."""
    plain = "candidates" in columns and not _OTHERWISE & set(columns) and not crowd.recognises(columns)
    return plain and len(set(columns)) == len(columns)


_Batch = dict[str, Any]  # arrays of pyarrow, by column


def _batches(pyarrow: ModuleType, content: bytes, columns: Sequence[str], delimiter: str) -> Iterator[_Batch]:
    """The columns that are read, some thousand rows at a time."""
    needed = [name for name in _READ if name in columns]
    reader = pyarrow.csv.open_csv(
        pyarrow.BufferReader(content),
        pyarrow.csv.ReadOptions(use_threads=False, column_names=columns, skip_rows=1),
        pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False),
        pyarrow.csv.ConvertOptions(include_columns=needed, column_types=dict.fromkeys(needed, pyarrow.string())),
    )
    for batch in reader:
        yield dict(zip(needed, batch.columns, strict=True))


def _read(
    pyarrow: ModuleType, batches: Iterator[_Batch], path: Path, given: tuple[str, ...] | None
) -> Annotations | None:
    names, label_names, split_names = dict[str, int](), dict[str, int](), dict[str, int]()
    files: list[str] = []
    sizes, entries, labels, splits = [], [], [], []
    for batch in batches:
        cells = pyarrow.compute.split_pattern(batch["candidates"], "|")
        before = len(names)
        entries.append(_numbered(cells.flatten(), names))
        if not all(map(_is_name, islice(names, before, None))):
            return None
        sizes.append(np.diff(cells.offsets.to_numpy()))
        empty = pyarrow.array([""] * len(cells))
        labels.append(_numbered(batch.get("label", empty), label_names))
        splits.append(_numbered(batch.get("split", empty), split_names))
        if "file_name" in batch:
            files += [name.strip() for name in batch["file_name"].to_pylist()]
    count, named = sum(map(len, sizes)), bool(files)
    classes = in_order(name for name in names if name) if given is None else given
    place = {name: k for k, name in enumerate(classes)} | {"": -1}
    known = all(name in place for name in (*names, *label_names)) and set(split_names) <= {"", *SPLITS}
    if not count or not known or (named and not all(files)):
        return None
    row, column = np.repeat(np.arange(count), np.concatenate(sizes)), _places(names, place)[np.concatenate(entries)]
    test = np.array([name == "test" for name in split_names], bool)[np.concatenate(splits)]
    filled = column >= 0
    candidates = np.zeros((count, len(classes)), bool)
    candidates[row[filled], column[filled]] = True
    # A test row may have an empty cell; a name that is empty or twice in its set is for the other reader to report.
    alone = test & (np.concatenate(sizes) == 1)
    if candidates.sum() != filled.sum() or not alone[row[~filled]].all():
        return None
    return Annotations(
        source=str(path),
        where=tuple(f"{path}, line {line}" for line in range(2, count + 2)),
        class_names=classes,
        candidates=candidates,
        labels=_places(label_names, place)[np.concatenate(labels)],
        test=test,
        file_names=tuple(files) if named else None,
    )


def _numbered(texts: Any, known: dict[str, int]) -> np.ndarray:
    """The number of each text of an array of pyarrow; new ones, without the space around them, become known."""
    encoded = texts.dictionary_encode()
    found = [known.setdefault(text.strip(), len(known)) for text in encoded.dictionary.to_pylist()]
    numbers: np.ndarray = np.array(found, np.int64)[encoded.indices.to_numpy()]
    return numbers


def _is_name(part: str) -> bool:
    """Whether a part of a cell is a plain name or empty: not a weight, not JSON, and no sign for anything."""
    return not (part.startswith(("[", "{")) or part in ANYTHING or WEIGHED.fullmatch(part))


def _places(names: dict[str, int], place: dict[str, int]) -> np.ndarray:
    return np.array([place[name] for name in names], np.int64)
