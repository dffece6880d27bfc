"""Reads tables in memory: pandas and polars frames, pyarrow tables, Hugging Face datasets. None is imported here."""

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

_LABELS = {"candidates", "excluded", "annotator", "worker"}  # columns of a frame of labels, unlike a 0/1 matrix


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
    """Read candidate sets from a table in memory or from a file, with the same options as `papi train`.

    Parameters
    ----------
    source
        A pandas or polars frame, a pyarrow table, a `datasets.Dataset`, anything with the Arrow interface, or the path
        of a file as for `--candidates.file`. A table has the columns `candidates`, `excluded`, `annotator` and `label`,
        as far as they apply, or one column per class.
    classes
        All class names in order. By default, the labels that occur.
    votes
        How votes become candidate sets: `union`, `at-least-N`, `at-least-N-else-union`, `vaguest` or `dawid-skene`.
    column
        Column or control that contains the labels, if there is more than one.
    format
        Format of the file. By default, it is detected.
    threshold
        For labels with weights: minimum share of the total weight for a label to become a candidate.
    empty
        How to treat empty cells: `refuse` raises an error, `unlabelled` makes every class a candidate.
    tree
        File with the class hierarchy. A label of an inner node stands for all classes below it.
    allow_missing_truth
        Accept rows whose true label is not among their candidates.

    Returns
    -------
    Annotations
        `candidates` `(N, K) bool` and `class_names`, and, if there are any, `weights` `(N, K)`, `labels` `(N,)` and
        `file_names`.

    Examples
    --------
    >>> import pandas
    >>> import papi
    >>> frame = pandas.DataFrame({"file_name": ["a.png", "b.png"], "candidates": ["rose|tulip", "tulip"]})
    >>> sets = papi.read_candidates(frame)
    >>> sets.class_names
    ('rose', 'tulip')
    >>> sets.candidates.tolist()
    [[True, True], [False, True]]
    """
    if empty not in ("refuse", "unlabelled"):
        raise UserError(f"empty must be 'refuse' or 'unlabelled'; got {empty!r}.")
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
    """Return whether this is a table with named columns."""
    return bool(_column_names(source)) and any(
        hasattr(source, name) for name in ("to_dict", "to_dicts", "to_pylist", "__arrow_c_stream__", "with_format")
    )


def holds_labels(source: object) -> bool:
    """Return whether this is a frame of labels, as opposed to one with a 0/1 column per class."""
    return is_frame(source) and bool(_LABELS & set(_column_names(source)))


def table_of(frame: Any, name: str = "the frame") -> Table:
    """Convert a frame to a table with rows counted from 1."""
    if not is_frame(frame):
        raise UserError(
            f"{type(frame).__name__} is not a supported table: use pandas, polars, pyarrow or datasets, or a file."
        )
    rows = [Row(f"{name}, row {number}", record) for number, record in enumerate(_records(frame), 1)]
    return Table(Path(name), _column_names(frame), tuple(rows))


def class_labels(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of integer label columns, as Hugging Face stores them in the schema of an Arrow table."""
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
    """Replace a number or a list of numbers by their names; missing values (Hugging Face: -1) become None."""
    if isinstance(value, list):
        return [named(each, names, where) for each in value]
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or not 0 <= value < len(names):
        raise UserError(f"{where} has the label {value!r}: it must be 0 to {len(names) - 1}.")
    return names[value]


def _column_names(frame: Any) -> tuple[str, ...]:
    """Return the column names; empty if the object is not a table."""
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
    """Convert a pandas cell: NaN becomes None, and an array becomes a list."""
    if isinstance(cell, np.ndarray):
        return cell.tolist()
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, set | frozenset | tuple):
        return sorted(map(str, cell)) if not isinstance(cell, tuple) else list(cell)
    return None if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell else cell
