"""Reads the csv of VIA (VGG Image Annotator 2): JSON attributes of files. Attributes of regions are ignored."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as shortened

from papi.data.dataset import Report
from papi.data.own.entries import Statement
from papi.data.own.tables import Row, read_table
from papi.errors import UserError

NAME = "via"


def recognises(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns comes from VIA."""
    return {"filename", "file_attributes"} <= {name.lstrip("#") for name in columns}


def statements(path: Path, column: str | None, report: Report) -> Iterator[Statement]:
    """The labels in an attribute of each file. There is a row for each region, and all have those of the file.

    `column` is the attribute to read, where files have several.
    """
    table = read_table(path, report)
    first = next((name for name in table.columns if name.lstrip("#") == "filename"), "filename")
    for name in (first, "file_attributes"):
        table.require(name)
    seen: dict[str, Mapping[str, object]] = {}
    asked: dict[str, str] = {}  # the first place of each attribute
    for row in table.rows:
        file = str(row.values.get(first) or "").strip()
        attributes = _attributes(row, "file_attributes")
        if not file or attributes is None:
            what = "file_attributes that are not a JSON object" if file else "no filename"
            report(f"{row.where} has {what}: {shortened(row.values.get('file_attributes'))}.")
            continue
        if seen.setdefault(file, attributes) is not attributes:
            if seen[file] != attributes:
                report(f"{row.where} has other file_attributes for {file!r} than an earlier row.")
            continue
        if not attributes and _attributes(row, "region_attributes"):
            report(
                f"{row.where} has labels of regions, but none of the file {file!r}: labels must be for whole images."
            )
            continue
        labels = _labels(attributes, column, row, asked, report)
        if labels is not None:
            yield Statement(row.where, file, labels=tuple(labels))
    if len(asked) > 1:
        raise UserError(
            f"{path} has several attributes ({', '.join(asked)}; see {list(asked.values())[1]}): choose the one with "
            "the labels with --candidates.column."
        )


def _labels(
    attributes: Mapping[str, object], column: str | None, row: Row, asked: dict[str, str], report: Report
) -> list[str] | None:
    """The labels in the attributes of a file; None if they have another form, which is reported.

    A text, or one of several options, is a text here. Of checkboxes, there is an object with those that are ticked.
    """
    labels: list[str] = []
    for name, value in attributes.items():
        if column not in (None, name):
            continue
        if isinstance(value, Mapping) and all(isinstance(each, bool) for each in value.values()):
            named = [option for option, ticked in value.items() if ticked]
        elif isinstance(value, str):
            named = [value] if value.strip() else []
        else:
            report(f"{row.where} has {shortened(value)} for the attribute {name!r}: use text or checkboxes.")
            return None
        if named:
            asked.setdefault(name, row.where)
        labels += [label.strip() for label in named]
    return labels


def _attributes(row: Row, column: str) -> Mapping[str, object] | None:
    """The JSON object in a cell; empty if the cell is. None if there is none."""
    cell = str(row.values.get(column) or "").strip()
    try:
        found = json.loads(cell) if cell else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None
