"""What is printed is text, whatever it contains."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from papi.cli.terminal import make_console, printable, process

Out = pytest.CaptureFixture[str]
BIDIRECTIONAL = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@given(st.text())
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set(BIDIRECTIONAL)
    assert len(shown) == len(text)
    assert all(new in (old, "?") for new, old in zip(shown, text, strict=True))


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u3000\xa0")))
def test_what_can_be_printed_stays(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert all(new == old for new, old in zip(printable(text), text, strict=True) if old.isprintable())


def test_marks_that_turn_the_direction_are_replaced() -> None:
    assert printable(f"a{BIDIRECTIONAL}b\x9b\x7f\u2028") == f"a{'?' * len(BIDIRECTIONAL)}b???"


@pytest.mark.parametrize("name", ["Screenshot 1.00\u202fPM", "\u3000", "می\u200cخواهم", "👩\u200d🔬", "naïve"])
def test_what_people_write_stays(name: str) -> None:
    assert printable(name) == name


def test_lines_stay_lines(capsys: Out) -> None:
    make_console().print("one\ntwo\x1b[31m\x07")
    assert capsys.readouterr().out == "one\ntwo?[31m?\n"


def test_brackets_and_colons_are_text(capsys: Out) -> None:
    make_console().print("[bold]a[/bold] :smile: [link=http://x]")
    assert capsys.readouterr().out == "[bold]a[/bold] :smile: [link=http://x]\n"


def test_cells_of_tables(capsys: Out) -> None:
    table = Table("name")
    table.add_row("evil\x1b]0;title\x07")
    make_console().print(table)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "evil" in said


def test_errors_have_their_own_stream(capsys: Out) -> None:
    make_console(stderr=True).print("wrong")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "wrong\n")


def test_of_many_processes_the_first_talks(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert process() == 0
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        assert process() == rank
        make_console().print(f"this is {rank}")
    assert capsys.readouterr().out == "this is 0\n"
