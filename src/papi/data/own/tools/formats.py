"""Detects the format of a file of labels and reads it."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from papi.data.dataset import Report
from papi.data.own.entries import Statement
from papi.data.own.tables import SUFFIXES, read_text
from papi.data.own.tools import coco, crowd, cvat, label_studio, via
from papi.errors import UserError
from papi.files.reading import opened, reason

FORMATS = ("table", label_studio.NAME, cvat.NAME, coco.NAME, via.NAME, crowd.NAME)
_HEADER_BYTES = 2**16  # of a csv file: its first line is in it

_FROM_JSON: dict[str, Callable[[object, Path, str | None, Report], Iterator[Statement]]] = {
    label_studio.NAME: label_studio.statements,
    coco.NAME: coco.statements,
}


def format_of(path: Path, given: str | None) -> str:
    """One of the formats, or `npz`; a table may still turn out to be one of answers (`crowd`)."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return "npz"
    if given is not None:
        return "table" if given == crowd.NAME else given
    if suffix == ".json":
        return "json"
    if suffix == ".xml":
        return cvat.NAME
    if suffix == ".csv" and via.recognises(_header(path)):
        return via.NAME
    if suffix not in SUFFIXES:
        raise UserError(
            f"{path} is not a supported file of labels: use {', '.join(SUFFIXES)}, .npz, or an annotation export "
            "(.json or .xml)."
        )
    return "table"


def read_export(path: Path, kind: str, column: str | None, report: Report) -> Iterator[Statement]:
    """What the annotators say, in the order of the file. `column` is the question to read, where there are several."""
    if kind == cvat.NAME:
        return cvat.statements(path, column, report)
    if kind == via.NAME:
        return via.statements(path, column, report)
    content = read_json_export(path)
    if kind == "json":
        kind = _tool_of(content, path)
    return _FROM_JSON[kind](content, path, column, report)


def read_json_export(path: Path) -> object:
    """The value in a JSON file of any size that fits into memory. Readers take out what they know, and check that."""
    text = read_text(path)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UserError(f"{path} is nested too deeply: it is not the export of an annotation tool.") from error
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}, line {error.lineno}, column {error.colno} is not valid JSON ({error.msg}): export it again."
        ) from error
    except ValueError as error:  # a whole number of thousands of digits
        raise UserError(f"{path} is not JSON ({reason(error)}).") from error


def _tool_of(content: object, path: Path) -> str:
    """The tool that has written this."""
    if label_studio.recognises(content):
        return label_studio.NAME
    if coco.recognises(content):
        return coco.NAME
    raise UserError(
        f"{path} is not the JSON of a supported tool: Label Studio (export it as JSON, not JSON-MIN) has a list of "
        "tasks with data and annotations, and COCO has an object with images, annotations and categories."
    )


def _header(path: Path) -> tuple[str, ...]:
    """The names of the columns of a csv file, as far as they can be read; reading it in full tells what is wrong."""
    try:
        with opened(path, 2**40) as stream:
            first = stream.read(_HEADER_BYTES).decode("utf-8-sig", "replace").splitlines()
        return tuple(name.strip() for name in next(csv.reader(first[:1]), []))
    except (OSError, csv.Error):
        return ()
