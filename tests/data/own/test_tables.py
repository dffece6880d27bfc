"""Tables: what is written reads back, and every row knows its place."""

import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_files import write_table
from papi.data.dataset import refuse
from papi.data.own.tables import (
    Table,
    cell_number,
    is_utf8,
    join_labels,
    read_table,
    read_text,
    split_labels,
)
from papi.errors import UserError

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
in_files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def write(folder: Path, text: str, name: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@given(st.lists(st.tuples(texts.filter(bool), texts, st.integers(0, 99)), min_size=1, max_size=5))
@in_files
def test_what_is_written_reads_back(suffix: str, tmp_path: Path, rows: list[tuple[str, str, int]]) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    path = tmp_path / f"table.{suffix}"
    names, notes, numbers = zip(*rows, strict=True)
    write_table(path, {"file_name": names, "note": notes, "number": numbers})
    table = read_table(path, refuse)
    assert table.columns == ("file_name", "note", "number")
    found = [(str(row.values["file_name"]), row.values["note"], int(str(row.values["number"]))) for row in table.rows]
    assert found == rows


def test_lists_and_missing_cells(tmp_path: Path) -> None:
    columns = {"file_name": ["a", "b"], "candidates": [["cat", "dog"], []], "label": ["cat", None]}
    write_table(tmp_path / "t.csv", columns)
    assert [dict(row.values) for row in read_table(tmp_path / "t.csv", refuse).rows] == [
        {"file_name": "a", "candidates": "cat|dog", "label": "cat"},
        {"file_name": "b", "candidates": "", "label": ""},
    ]
    write_table(tmp_path / "t.jsonl", columns)
    assert [dict(row.values) for row in read_table(tmp_path / "t.jsonl", refuse).rows] == [
        {"file_name": "a", "candidates": ["cat", "dog"], "label": "cat"},
        {"file_name": "b", "candidates": []},
    ]


@given(st.lists(texts.filter(lambda text: text.strip() != ""), min_size=1, max_size=5))
def test_labels_in_one_cell_come_apart_again(labels: list[str]) -> None:
    assert split_labels(join_labels(labels)) == labels


@given(st.lists(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=5), min_size=1, max_size=5))
def test_plain_labels_are_easy_to_read(labels: list[str]) -> None:
    assert join_labels(labels) == "|".join(labels)


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        (None, []),
        ("", []),
        ("  ", []),
        ("cat", ["cat"]),
        (" cat | dog ", ["cat", "dog"]),
        ("cat||dog", ["cat", "", "dog"]),
        ('["cat", "a|b"]', ["cat", "a|b"]),
        ("[1, 2]", ["1", "2"]),
        ("[broken", ["[broken"]),
        ("[broken]", None),
        (["cat", 3], ["cat", "3"]),
        (7, ["7"]),
        (True, None),
        (1.5, None),
        ([True], None),
        ([None], None),
        ({"cat": 1}, None),
    ],
)
def test_labels_of_a_cell(cell: object, labels: list[str] | None) -> None:
    assert split_labels(cell) == labels


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (3, 3.0),
        ("3", 3.0),
        (" 2.5e1 ", 25.0),
        (True, 1.0),
        (Decimal("1.25"), 1.25),
        (np.float32(0.5), 0.5),
        ("inf", math.inf),
        ("", None),
        ("three", None),
        (None, None),
        ([1], None),
        ({}, None),
        (10**400, None),  # JSON has integers of any length
    ],
)
def test_numbers_of_a_cell(cell: object, number: float | None) -> None:
    assert cell_number(cell) == number


@given(st.floats(allow_nan=False))
def test_every_number_reads_back(number: float) -> None:
    assert cell_number(number) == cell_number(repr(number)) == number


def test_rows_know_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, 'name,note\na,"two\nlines"\n\nb,x\n', "t.csv")
    assert [row.where for row in read_table(path, refuse).rows] == [f"{path}, line 2", f"{path}, line 5"]
    path = write(tmp_path, '{"name": "a"}\n\n{"name": "b"}\n', "t.jsonl")
    assert [row.where for row in read_table(path, refuse).rows] == [f"{path}, line 1", f"{path}, line 3"]


def test_columns_of_json_are_those_of_all_rows(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a": 1}\n{"b": 2, "a": 3}\n', "t.jsonl")
    table = read_table(path, refuse)
    assert table.columns == ("a", "b")
    assert [dict(row.values) for row in table.rows] == [{"a": 1}, {"b": 2, "a": 3}]


def test_bad_rows_are_reported_and_left_out(tmp_path: Path) -> None:
    problems: list[str] = []
    path = write(tmp_path, "a,b\n1,2\n3\n4,5\n6,7,8\n", "t.csv")
    table = read_table(path, problems.append)
    assert [row.values["a"] for row in table.rows] == ["1", "4"]
    assert [problem.split(" has ")[0] for problem in problems] == [f"{path}, line 3", f"{path}, line 5"]


@given(st.lists(st.sampled_from(["a,b", "1,2", '"', "x", "1,2,3", "", '"y","z"', "\ufeff", "\r", "{}", "[1]"])))
@in_files
def test_any_lines_end_in_rows_or_a_sentence(tmp_path: Path, lines: list[str]) -> None:
    for name in ("t.csv", "t.jsonl"):
        path = write(tmp_path, "\n".join(lines), name)
        try:
            table = read_table(path, lambda problem: None)
        except UserError:
            continue
        assert all(set(row.values) <= set(table.columns) for row in table.rows)


def test_a_missing_column_is_named() -> None:
    table = Table(Path("t.csv"), ("file", "candidates"), ())
    table.require("candidates")
    with pytest.raises(UserError, match=r"t.csv has no column 'file_name', .*did you mean 'file'"):
        table.require("file_name")


@given(texts)
def test_texts_can_be_written(text: str) -> None:
    assert is_utf8(text)
    assert not is_utf8(text + "\udcff")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_text(mark: str, tmp_path: Path) -> None:
    assert read_text(write(tmp_path, f"{mark}kätzchen", "t.txt")) == "kätzchen"


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("one\ntwo\nkätzchen".encode("latin-1"))
    with pytest.raises(UserError, match=r"t.txt, line 3 is not UTF-8 \(byte 0xe4\): save the file as UTF-8"):
        read_text(tmp_path / "t.txt")


def test_deeply_nested_json_is_no_row(tmp_path: Path) -> None:
    problems: list[str] = []
    path = write(tmp_path, json.dumps({"a": 1}) + "\n" + "[" * 100_000 + "\n", "t.jsonl")
    assert len(read_table(path, problems.append).rows) == 1
    assert "line 2 is not valid JSON" in problems[0]
