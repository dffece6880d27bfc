"""Large tables: the reader of columns and the reader of rows give the same sets, and say the same about mistakes."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papi.data.own import columnwise
from papi.data.own.annotations import read_annotations
from papi.data.own.columnwise import read_columnwise
from papi.data.own.entries import Rules
from papi.errors import UserError

pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")

NAMES = ["rose", "tulip", "7", "10", "dog rose", "Straße"]
ODD = [
    "rose:0.8",
    "?",
    "*",
    '["rose"]',
    '"rose"',
    "{}",
    "",
    " ",
    "|",
    "ro\0se",
    "a,b",
    "\u2028",
    "\x1f",
    "roſe",
    "\ufeffrose",
]
MOSTLY_PLAIN = 20  # one mistake in about so many tables leaves many without one

names = st.sampled_from(NAMES)
sets = st.lists(names, min_size=1, max_size=3, unique=True).map("|".join)
spaced = st.tuples(st.sampled_from(["", " ", "\t"]), sets, st.sampled_from(["", " "])).map("".join)
odd = st.lists(st.sampled_from(NAMES + ODD), max_size=3).map("|".join)
headers = st.sampled_from([
    "file_name,candidates", "file_name, candidates ,label", "file_name,candidates,label,split", "candidates,label",
    "candidates,note", "file_name;candidates;label", "candidates",
])  # fmt: skip
rare_headers = st.sampled_from(["file_name,candidates,candidates", "file_name,candidates,excluded", "file_name,label"])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """A csv file that is plain, or has a mistake or something special in one of its rows."""
    header = draw(headers if draw(st.integers(0, MOSTLY_PLAIN)) else rare_headers)
    delimiter = ";" if ";" in header else ","
    columns = [name.strip() for name in header.split(delimiter)]
    count = draw(st.integers(0, 6))
    special = draw(st.integers(0, 2 * count + 1))
    lines = [header]
    for number in range(count):
        strange = special == number
        cells = {
            "file_name": f"{number}.png" if not strange else draw(st.sampled_from(["0.png", "./0.png", "", " 1.png"])),
            "candidates": draw(odd if strange else spaced),
            "label": draw(names if strange else st.just("")),
            "split": draw(st.sampled_from(["train", "test", "", "Test" if strange else "train"])),
        }
        cells["label"] = cells["label"] or (cells["candidates"].split("|")[0] if draw(st.booleans()) else "")
        lines.append(delimiter.join(cells.get(name, "x") for name in columns))
        if strange and draw(st.booleans()):
            lines[-1] += draw(st.sampled_from([",one more", "\n", "\r", '"']))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    content = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + content


def outcome(path: Path, rules: dict[str, bool], classes: tuple[str, ...] | None, by_name: bool) -> list[object]:
    """All that a reader says: its problems, then what it has read or why it could not."""
    said: list[object] = []
    try:
        found = read_annotations(path, Rules(report=said.append, **rules), classes, by_name=by_name)
    except UserError as error:
        return [*said, str(error)]
    values = [getattr(found, field.name) for field in fields(found)]
    return [*said, *((each.dtype, each.tolist()) if isinstance(each, np.ndarray) else each for each in values)]


@given(
    tables(),
    st.fixed_dictionaries({name: st.booleans() for name in ("allow_missing_truth", "unlabelled", "by_label")}),
    st.sampled_from([None, tuple(NAMES), ("rose", "tulip")]),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
def test_both_readers_say_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    rules: dict[str, bool],
    classes: tuple[str, ...] | None,
    by_name: bool,
) -> None:
    path = tmp_path / "sets.csv"
    path.write_bytes(content)
    monkeypatch.setattr(columnwise, "LEAST_BYTES", 0)
    by_column = outcome(path, rules, classes, by_name)
    monkeypatch.setattr(columnwise, "_pyarrow", lambda: None)
    by_row = outcome(path, rules, classes, by_name)
    monkeypatch.undo()
    assert by_column == by_row


def rows(count: int, cells: Sequence[str]) -> str:
    return "".join(f"{number}.png,{cells[number % len(cells)]}\n" for number in range(count))


def read(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(columnwise, "LEAST_BYTES", 0)
    path.write_text(text, encoding="utf-8", newline="")
    return read_columnwise(path, Rules(), None)


PLAIN = [
    "file_name,candidates\n" + rows(40_000, ["rose|tulip", " 7 ", "dog rose|Straße"]),  # several blocks
    "file_name,candidates,label,split\r\na.png,rose|tulip,rose,train\r\nb.png,,tulip,test",
    "candidates\trose\nrose\ttulip\n",
]
NOT_PLAIN = [
    'file_name,candidates\na.png,"rose"\n',
    "file_name,candidates\na.png,rose:0.8|tulip:0.2\n",
    "file_name,candidates\na.png,rose\n\nb.png,tulip\n",
    "file_name,candidates\na.png,rose|rose\n",
    "file_name,candidates\na.png,rose,tulip\n",
    "file_name,candidates,annotator\na.png,rose,ann\n",
    "file_name,candidates\na.png," + "|".join(map(str, range(40_000))) + "\n",  # longer than a cell may be
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_tables_are_read_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert read(tmp_path / "sets.csv", text, monkeypatch) is not None
    by_column = outcome(tmp_path / "sets.csv", {}, None, False)
    monkeypatch.undo()
    monkeypatch.setattr(columnwise, "_pyarrow", lambda: None)
    assert outcome(tmp_path / "sets.csv", {}, None, False) == by_column


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_other_tables_are_left_to_the_reader_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert read(tmp_path / "sets.csv", text, monkeypatch) is None


def test_small_files_do_not_load_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise AssertionError("pyarrow is loaded")

    monkeypatch.setattr(columnwise, "_pyarrow", load)
    (tmp_path / "sets.csv").write_text("file_name,candidates\na.png,rose|tulip\nb.png,rose\n")
    assert read_annotations(tmp_path / "sets.csv", Rules()).class_names == ("rose", "tulip")
