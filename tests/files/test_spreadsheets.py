"""Texts that spreadsheets would compute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.files.spreadsheets import cell, text_of


@pytest.mark.parametrize(
    "text", ["=1+1", '=HYPERLINK("http://x")', "+49 170", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "--1"]
)
def test_what_would_be_computed_becomes_text(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert text_of(cell(text)) == text


@pytest.mark.parametrize("text", ["", "ant", "a=b", "a-b", "'", "it's", "0.25", "-0.5", "+1", "-1e-7", " =1", "a/-b"])
def test_the_rest_stays(text: str) -> None:
    assert cell(text) == text
    assert text_of(text) == text


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    """Except where it looks like a cell that was quoted, which a reader tries as it is first."""
    assert text in (text_of(cell(text)), f"'{text_of(cell(text))}")


@given(st.one_of(st.floats(), st.integers(), st.decimals()))
def test_numbers_stay_numbers(number: object) -> None:
    if "sNaN" not in str(number):
        assert cell(str(number)) == str(number)
