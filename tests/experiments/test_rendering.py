"""The same tables as Markdown, LaTeX, CSV and in the terminal."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from toy_results import EPOCHS, SUITE, TASK, results

from papi.experiments import rendering, tables
from papi.experiments.suites import Published, Suite
from papi.experiments.tables import Sheet

words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
sheets = st.integers(1, 4).flatmap(
    lambda width: st.builds(
        Sheet,
        title=words,
        header=st.tuples(*[words] * width),
        rows=st.lists(st.tuples(*[words] * width), max_size=4).map(tuple),
        bold=st.sets(st.tuples(st.integers(0, 3), st.integers(0, width - 1))).map(frozenset),
    )
)


@given(sheets)
def test_markdown_holds_every_cell_and_marks_the_best(sheet: Sheet) -> None:
    lines = [line.strip("| ").split(" | ") for line in rendering.markdown(sheet).splitlines() if line.startswith("|")]
    header, rule, *rows = lines
    assert tuple(header) == sheet.header
    assert rule == ["---"] * len(sheet.header)
    expected = [
        [f"**{text}**" if (number, place) in sheet.bold else text for place, text in enumerate(row)]
        for number, row in enumerate(sheet.rows)
    ]
    assert rows == expected


@given(sheets)
def test_latex_holds_every_cell_and_marks_the_best(sheet: Sheet) -> None:
    text = rendering.latex(sheet)
    lines = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
    assert [tuple(cell.removeprefix(r"\textbf{").removesuffix("}") for cell in line) for line in lines] == [
        sheet.header,
        *sheet.rows,
    ]
    marked = {(row, place) for row, line in enumerate(lines[1:]) for place, cell in enumerate(line) if "textbf" in cell}
    assert marked == {(row, place) for row, place in sheet.bold if row < len(sheet.rows)}


def test_formats_say_the_same() -> None:
    (sheet,) = tables.overviews(EPOCHS, results())
    assert "| PaPi | **83.00 ± 2.45** |" in rendering.markdown(sheet)
    assert r"PaPi & \textbf{83.00 $\pm$ 2.45} \\" in rendering.latex(sheet)
    assert tables.RULE.split(",")[0].removesuffix(" in %") in rendering.latex(sheet)  # a table in a paper stands alone
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(rendering.terminal(sheet))
    assert re.search(r"PaPi\s+│ 83\.00 ± 2\.45", console.export_text())


def test_latex_has_no_character_that_latex_would_obey() -> None:
    sheet = Sheet("50 % & more_", ("a_b",), (("1 & 2 %",),))
    body = rendering.latex(sheet)
    assert not re.search(r"(?<!\\)%", body)
    assert not re.search(r"(?<!\\)_", body)
    assert r"1 \& 2 \%" in body


def rows_of(suite: Suite, found: tables.Results) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(rendering.comma_separated(suite, found))))


def test_a_line_of_csv_for_each_mean() -> None:
    rows = rows_of(SUITE, results())
    (papi,) = [row for row in rows if row["method"] == "PaPi" and row["table"] == "equal epochs"]
    assert (papi["mean"], papi["std"], papi["seeds"], papi["wanted"]) == ("83.00", "2.45", "3", "3")
    assert len(rows) == sum(len(table.entries) * len(table.tasks) for table in SUITE.tables)


def test_csv_leaves_empty_what_is_not_known() -> None:
    assert all((row["mean"], row["std"], row["seeds"]) == ("", "", "0") for row in rows_of(SUITE, {}))


def test_csv_has_published_numbers() -> None:
    place = ("PaPi", TASK.data_label, TASK.label)
    table = EPOCHS.__class__("published", EPOCHS.entries, (TASK,), epochs=2, published={place: Published(82.5, 0.1)})
    rows = {row["method"]: row for row in rows_of(Suite("toy", "A toy", (table,)), results())}
    assert (float(rows["PaPi"]["paper_mean"]), float(rows["PaPi"]["paper_std"])) == (82.5, 0.1)
    assert rows["DPLL"]["paper_mean"] == ""


@pytest.mark.parametrize("form", [rendering.markdown, rendering.latex])
def test_a_table_without_rows(form: "type") -> None:
    assert "Method" in form(Sheet("Empty", ("Method",), ()))
