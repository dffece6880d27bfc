"""Reads tables in csv, tsv, jsonl, parquet and xlsx files as rows with their position in the file."""

import csv
import io
import json
import re
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from reprlib import repr as shortened
from types import ModuleType
from typing import SupportsFloat

from papi.data.dataset import Report
from papi.data.own.rows import Row as Row
from papi.data.own.rows import Table as Table
from papi.data.own.spreadsheet import read_xlsx
from papi.errors import UserError
from papi.files.reading import memory_bytes, plain_file, read_bytes, reason

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
WEIGHED = re.compile(r"(.*\S)\s*:\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(%?)", re.DOTALL)
"""A label with its weight: `rose:0.8` or `rose: 80 %`."""
ANYTHING = ("?", "*")  # instead of labels: unlabelled
_NOT = "not "


def read_table(path: Path, report: Report) -> Table:
    """Read a table in the format of its suffix. Rows that cannot be read are reported and skipped."""
    readers = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".jsonl": _read_jsonl,
        ".parquet": _read_parquet,
        ".xlsx": read_xlsx,
    }
    if path.suffix.lower() not in readers:
        raise UserError(f"{path} is not a supported table: use {', '.join(SUFFIXES)} or .npz.")
    return readers[path.suffix.lower()](path, report)


def join_labels(labels: Sequence[str]) -> str:
    """Several labels in one cell: `cat|dog`, or a JSON list if a name would be misread."""
    if any(_is_misread(label) for label in labels):
        return json.dumps(list(labels), ensure_ascii=False)
    return "|".join(labels)


def _is_misread(label: str) -> bool:
    return (
        "|" in label
        or label.startswith(("[", "{"))
        or label != label.strip()
        or label in ANYTHING
        or WEIGHED.fullmatch(label) is not None
    )


def split_labels(cell: object) -> list[str] | None:
    """The labels in a cell: a list, a JSON list, or a text separated by `|`; None if it is none of these."""
    if cell is None:
        return []
    if isinstance(cell, str):
        if cell.strip().startswith("[") and cell.strip().endswith("]"):
            try:
                return split_labels(json.loads(cell))
            except (ValueError, RecursionError):  # not JSON, or nested too deeply
                return None
        return [label.strip() for label in cell.split("|")] if cell.strip() else []
    if isinstance(cell, bool) or not isinstance(cell, int | list):
        return None
    labels = [cell] if isinstance(cell, int) else cell
    if any(isinstance(label, bool) or not isinstance(label, str | int) for label in labels):
        return None
    return [str(label).strip() if isinstance(label, int) else label for label in labels]


def excluded_labels(cell: object, classes: Collection[str] | None = None) -> list[str] | None:
    """The labels in a cell of exclusions, which may be written `not rose, not tulip`; None if it has no labels."""
    if isinstance(cell, str) and "|" not in cell and cell.strip().startswith(_NOT):
        parts = [part.strip() for part in cell.split(",")]
        cell = parts if all(part.startswith(_NOT) for part in parts) else cell
    labels = split_labels(cell)
    known = classes or ()
    return labels and [label if label in known else label.removeprefix(_NOT).strip() for label in labels]


def cell_text(row: Row, column: str) -> str | None:
    """A cell as text; None if it is missing or empty."""
    value = row.values.get(column)
    # A list instead of a text can be nested too deeply to print.
    text = "" if value is None else shortened(value) if isinstance(value, list | dict) else str(value)
    return text.strip() or None


def cell_number(cell: object) -> float | None:
    """The number in a cell; None if it contains anything else."""
    try:
        return float(cell) if isinstance(cell, str | SupportsFloat) else None
    except (ValueError, TypeError, OverflowError):
        return None


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: file names and JSON escapes may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_text(path: Path) -> str:
    """Read a file as text. It must be UTF-8, with or without a byte-order mark."""
    try:
        content = read_bytes(path, memory_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): check the name.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line} is not UTF-8 (byte {content[error.start]:#04x}): save the file as UTF-8."
        ) from error


def _read_csv(path: Path, report: Report) -> Table:
    text = read_text(path)
    # strict: an unclosed quote is an error, not a cell with the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter_of(path, text))
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    line = 1
    try:
        for cells in reader:
            where, line = f"{path}, line {line}", reader.line_num + 1
            if not columns:
                columns = _columns(cells, where)
            elif cells and len(cells) != len(columns):
                report(f"{where} has {len(cells)} cells, but the header has {len(columns)}.")
            elif cells:
                rows.append(Row(where, dict(zip(columns, cells, strict=True))))
    except csv.Error as error:
        raise UserError(f"{path}, line {line} is not valid csv ({error}): check its quotes.") from error
    if not columns:
        raise UserError(f"{path} is empty: write the column names into the first line.")
    return Table(path, columns, tuple(rows))


def delimiter_of(path: Path, text: str) -> str:
    """The separator of columns: for a csv file a comma, or another one that its first line contains instead."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    first = text.partition("\n")[0]
    return "," if "," in first else next((each for each in ";\t" if each in first), ",")


def _columns(cells: list[str], where: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{where} has the column {twice[0]!r} twice: rename one.")
    return names


def _read_jsonl(path: Path, report: Report) -> Table:
    text = read_text(path)
    if not text.strip():
        raise UserError(f"{path} is empty: write one JSON object per line.")
    rows: list[Row] = []
    # Not splitlines(): names may contain other characters that it treats as line ends.
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            whole = "\\u" not in line or is_utf8(json.dumps(record, ensure_ascii=False))
        except (ValueError, RecursionError) as error:
            report(f"{where} is not valid JSON ({error}).")
            continue
        if not isinstance(record, dict):
            report(f'{where} is not a JSON object: write {{"file_name": …, "candidates": […]}}.')
        elif not whole:
            report(f"{where} has half a character, such as \\ud83d: write names as UTF-8.")
        else:
            rows.append(Row(where, record))
    if not rows:
        raise UserError(f"{path} has no usable rows: write one JSON object per line.")
    return Table(path, tuple(dict.fromkeys(name for row in rows for name in row.values)), tuple(rows))


def _read_parquet(path: Path, report: Report) -> Table:
    pyarrow = _pyarrow(path)
    try:
        table = pyarrow.parquet.read_table(plain_file(path, memory_bytes()))
        records = table.to_pylist()
    except (OSError, ValueError, OverflowError, pyarrow.ArrowException) as error:
        raise UserError(f"{path} is not a readable parquet file ({reason(error)}): write it again.") from error
    rows = (Row(f"{path}, row {number}", record) for number, record in enumerate(records, 1))
    return Table(path, tuple(table.column_names), tuple(rows))


def _pyarrow(path: Path) -> ModuleType:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise UserError(f"{path} needs pyarrow to be read: run pip install 'papi-pll[parquet]'.") from error
