"""The check of the documentation's English: it finds what it is for, and leaves code alone."""

from pathlib import Path

import pytest

from recipes.prose import findings, main


@pytest.mark.parametrize(
    "sentence",
    [
        "Its step is dear.",
        "So it is with three more.",
        "It leads by the more\nthe more ambiguous the labels are.",
        "The log has a row an epoch.",
        "The the network is small.",  # proselint's own
    ],
)
def test_a_phrasing_is_found_with_its_line(sentence: str) -> None:
    assert [line for line, _ in findings(f"# Title\n\nA good sentence.\n\n{sentence}\n")][:1] == [5]


@pytest.mark.parametrize(
    "page",
    [
        "The network is small. It costs 3 ms per step.\n",
        "```\nthis is dear\n```\n",
        "The option `is dear` and [a link](is-silent.md).\n",
        "## Add a method\n\nA method is one file.\n",
        "![Accuracy](a.png)\n\nAccuracy is measured on new images.\n",
    ],
)
def test_good_sentences_code_and_links_pass(page: str) -> None:
    assert list(findings(page)) == []


def test_what_is_found_is_printed_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("A model.\n")
    bad.write_text("A model.\nThe log is silent.\n")
    assert main([good]) == 0
    assert main([good, bad]) == 1
    assert capsys.readouterr().out.startswith(f"{bad}:2: ")
