"""Tables in xlsx files: what is damaged ends in a sentence."""

import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.data.dataset import refuse
from papi.data.own.spreadsheet import read_xlsx
from papi.errors import UserError

openpyxl = pytest.importorskip("openpyxl", reason="the extra `xlsx` is not installed")


def _whole() -> bytes:
    book = openpyxl.Workbook()
    for row in (["file_name", "candidates"], ["a.png", "rose|tulip"], ["b.png", "rose"]):
        book.worksheets[0].append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


WHOLE = _whole()


def test_rows_of_the_first_sheet(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(WHOLE)
    table = read_xlsx(tmp_path / "x.xlsx", refuse)
    assert [row.values for row in table.rows] == [
        {"file_name": "a.png", "candidates": "rose|tulip"},
        {"file_name": "b.png", "candidates": "rose"},
    ]


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=16))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_ends_in_rows_or_a_sentence(tmp_path: Path, at: int, other: bytes) -> None:
    (tmp_path / "x.xlsx").write_bytes(WHOLE[:at] + other + WHOLE[at + len(other) :])
    with suppress(UserError):
        read_xlsx(tmp_path / "x.xlsx", refuse)


def test_compressed_data_that_cannot_be_unpacked(tmp_path: Path) -> None:
    at = WHOLE.index(b"xl/worksheets/sheet1.xml") + len("xl/worksheets/sheet1.xml")
    (tmp_path / "x.xlsx").write_bytes(WHOLE[:at] + b"\xff" * 16 + WHOLE[at + 16 :])
    with pytest.raises(UserError, match="not a readable xlsx file"):
        read_xlsx(tmp_path / "x.xlsx", refuse)
