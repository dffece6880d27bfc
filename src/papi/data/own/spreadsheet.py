"""Reads tables in xlsx files: the first sheet, with the column names in its first row."""

import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from xml.etree.ElementTree import ParseError  # nosec B405  # the name of an error; openpyxl reads the file

from papi.data.dataset import Report
from papi.data.own.rows import Row, Table
from papi.errors import UserError
from papi.files.reading import memory_bytes, opened, reason

# Exceptions of openpyxl for damaged files.
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, RuntimeError,
    ParseError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_xlsx(path: Path, report: Report) -> Table:
    """Read the first sheet. Formulas are read as their saved values."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise UserError(f"{path} needs openpyxl to be read: run pip install 'papi-pll[xlsx]'.") from error
    try:
        with opened(path, memory_bytes()) as stream:
            with zipfile.ZipFile(stream) as archive:
                if sum(member.file_size for member in archive.infolist()) > memory_bytes() // 4:
                    raise ValueError("it does not fit into memory")
            stream.seek(0)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # the size in the file may be wrong
            lines = [tuple(row) for row in sheet.iter_rows(values_only=True)]
            book.close()
    except _DAMAGE as error:
        raise UserError(f"{path} is not a readable xlsx file ({reason(error)}): save it again.") from error
    return _table(path, lines, report)


def _table(path: Path, lines: list[tuple[object, ...]], report: Report) -> Table:
    filled = [(number, cells) for number, cells in enumerate(lines, 1) if any(cell is not None for cell in cells)]
    if not filled:
        raise UserError(f"{path} is empty: write the column names into the first row of its first sheet.")
    names = ["" if cell is None else str(cell).strip() for cell in filled[0][1]]
    while names and not names[-1]:
        names.pop()
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise UserError(f"{path}, row {filled[0][0]} has the column {twice!r} twice: rename one.")
    rows = []
    for number, cells in filled[1:]:
        where = f"{path}, row {number}"
        if any(cell is not None for cell in cells[len(names) :]):
            report(f"{where} has {len(cells)} cells, but the header has {len(names)}.")
            continue
        values = [_value(cell) for cell in (*cells, *[None] * len(names))[: len(names)]]
        rows.append(Row(where, dict(zip(names, values, strict=True))))
    return Table(path, tuple(names), tuple(rows))


def _value(cell: object) -> object:
    """Convert a cell to the form of other tables: a spreadsheet stores 1 as 1.0."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell if cell is None or (isinstance(cell, str | int | float) and not isinstance(cell, bool)) else str(cell)
