"""Tables in memory: frames of pandas and polars, tables of pyarrow, datasets of Hugging Face. None is imported here."""

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from papi.data.own.annotation_arrays import Annotations
from papi.data.own.annotations import from_table, read_annotations
from papi.data.own.entries import Rules
from papi.data.own.tables import Row, Table
from papi.data.own.tools.crowd import as_votes
from papi.data.own.trees import read_tree
from papi.errors import UserError

_LABELS = {"candidates", "excluded", "annotator", "worker"}  # columns by which a frame of labels is told from a matrix


def read_candidates(
    source: object,
    *,
    classes: tuple[str, ...] | list[str] | None = None,
    votes: str = "union",
    column: str | None = None,
    format: str | None = None,
    threshold: float = 0.0,
    empty: str = "refuse",
    tree: str | Path | None = None,
    allow_missing_truth: bool = False,
) -> Annotations:
    """Candidate sets from a frame, or from a file: what `--candidates.file` reads, with the same options.

    A frame is one of pandas or polars, a table of pyarrow, a `datasets.Dataset`, or anything that speaks Arrow. It has
    the columns of a table of candidates: `candidates`, `excluded`, `annotator` and `label`, or one for each class.
    Returns `candidates` `(N, K) bool` and `class_names`, and where there are any, `weights` `(N, K)`, `labels` `(N,)`
    and `file_names`.
    """
    if empty not in ("refuse", "unlabelled"):
        raise UserError(f"empty is {empty!r}: give 'refuse' or 'unlabelled'.")
    known = None if tree is None else read_tree(Path(tree))
    rules = Rules(
        votes,
        allow_missing_truth,
        format=format,
        column=column,
        threshold=threshold,
        unlabelled=empty == "unlabelled",
        tree=known,
    )
    names = None if classes is None else tuple(classes)
    if isinstance(source, str | Path):
        return read_annotations(Path(source), rules, names, by_name=False)
    return from_table(as_votes(table_of(source), format), rules, names)


def is_frame(source: object) -> bool:
    """Whether this is a table with named columns."""
    return bool(_column_names(source)) and any(
        hasattr(source, name) for name in ("to_dict", "to_dicts", "to_pylist", "__arrow_c_stream__", "with_format")
    )


def holds_labels(source: object) -> bool:
    """Whether this is a frame of labels, and not one with a column of 0 and 1 for each class."""
    return is_frame(source) and bool(_LABELS & set(_column_names(source)))


def table_of(frame: Any, name: str = "the frame") -> Table:
    """The rows of a frame, counted from 1."""
    if not is_frame(frame):
        raise UserError(
            f"{type(frame).__name__} is no frame: give one of pandas, polars, pyarrow or datasets, or a file."
        )
    rows = [Row(f"{name}, row {number}", record) for number, record in enumerate(_records(frame), 1)]
    return Table(Path(name), _column_names(frame), tuple(rows))


def class_labels(schema: Any) -> dict[str, tuple[str, ...]]:
    """Columns of numbers that stand for names, as Hugging Face writes it into the schema of an Arrow table."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        inner = feature
        while isinstance(inner, dict) and "feature" in inner:  # a list of labels
            inner = inner["feature"]
        names = inner.get("names") if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" else None
        if isinstance(names, list):
            found[str(column)] = tuple(map(str, names))
    return found


def named(value: object, names: tuple[str, ...], where: str) -> object:
    """A number, or a list of numbers, as the names they stand for; what is missing stays so (Hugging Face: -1)."""
    if isinstance(value, list):
        return [named(each, names, where) for each in value]
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or not 0 <= value < len(names):
        raise UserError(f"{where} has the label {value!r}: there are {len(names)} names.")
    return names[value]


def _column_names(frame: Any) -> tuple[str, ...]:
    """The names of the columns, where the attribute is not a method of something else."""
    found = getattr(frame, "column_names", None)
    found = getattr(frame, "columns", None) if found is None else found
    if found is None or callable(found) or isinstance(found, str | Mapping):
        return ()
    return tuple(map(str, found))


def _records(frame: Any) -> Iterator[dict[str, object]]:
    if hasattr(frame, "with_format") and hasattr(frame, "features"):  # Hugging Face; images stay as they are stored
        schema = frame.features.arrow_schema
        yield from _arrow_records(frame.with_format("arrow")[:], class_labels(schema))
    elif hasattr(frame, "to_pylist"):
        yield from _arrow_records(frame, class_labels(frame.schema))
    elif hasattr(frame, "to_dicts"):
        yield from frame.to_dicts()
    elif hasattr(frame, "to_dict"):
        yield from ({str(name): _plain(cell) for name, cell in row.items()} for row in frame.to_dict("records"))
    else:
        yield from _arrow_records(import_module("pyarrow").table(frame), {})


def _arrow_records(table: Any, names: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, object]]:
    for number, record in enumerate(table.to_pylist(), 1):
        for column in names.keys() & record.keys():
            record[column] = named(record[column], names[column], f"row {number}, column {column!r},")
        yield record


def _plain(cell: object) -> object:
    """A cell of pandas: NaN is a missing one, and an array is a list."""
    if isinstance(cell, np.ndarray):
        return cell.tolist()
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, set | frozenset | tuple):
        return sorted(map(str, cell)) if not isinstance(cell, tuple) else list(cell)
    return None if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell else cell
