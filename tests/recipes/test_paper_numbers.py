"""Numbers come out of LaTeX tables with their places."""

import csv
import os
import re
from pathlib import Path

import pytest

from recipes import paper_numbers
from recipes.paper_numbers import Number, numbers

SOURCE = os.environ.get("PAPI_PAPER_TEX")
BY_ROW = r"""
Numbers in the text, as 1.00 $\pm$ 0.10\%, are not in a table.
\begin{tabular}{c|c|cc}
    \toprule[1.5pt]
    Dataset & Method & $q$ = 0.1 & $q$ = 0.3\\
    \midrule
    \multirow{2}*{First} & \cellcolor{Gainsboro} Bound & \multicolumn{2}{c}{\cellcolor{Gainsboro} 96.41 $\pm$ 0.02\%} \\
    ~ & Mine (ours) & \textbf{95.79 $\pm$ 0.16\%} & 95.63 $\pm$ 0.06\% \\
    \midrule
    \multirow{2}*{Second} & Bound & 1.20 $\pm$ 0.03\% & 4.50 $\pm$ 0.06\% \\
    \bottomrule[1.5pt]
\end{tabular}
\caption{By row (mean $\pm$ std).}
\label{tab:rows}
"""
BY_COLUMN = r"""
\begin{tabular}{c|cccc}
    \toprule
    \multirow{2}*{Method} & \multicolumn{2}{c}{First} & Second \\
    ~ & $q$ = 0.5 & $q$ = 0.7 & $q$ = 0.1 \\
    \midrule
    \emph{Variant} 1 & 9.00 $\pm$ 0.10\% & 8.00 $\pm$ 0.20\% & 7.00 $\pm$ 0.30\% \\
    \midrule
    Other (2$\times$S) & 6.00 $\pm$ 0.40\% & 5.00 $\pm$ 0.50\% & \textbf{4.00 $\pm$ 0.60\%} \\
    \bottomrule
\end{tabular}
\label{tab:columns}
"""
WITHOUT_RATES = r"""
\toprule
Method & First & Second \\
\midrule
Mine & 9.10 $\pm$ 0.10\% & 8.20 $\pm$ 0.20\% \\
\bottomrule
\label{tab:plain}
"""


def test_datasets_in_rows() -> None:
    assert list(numbers(BY_ROW)) == [
        Number("tab:rows", "Bound", "First", "0.1", "96.41", "0.02"),
        Number("tab:rows", "Bound", "First", "0.3", "96.41", "0.02"),
        Number("tab:rows", "Mine", "First", "0.1", "95.79", "0.16"),
        Number("tab:rows", "Mine", "First", "0.3", "95.63", "0.06"),
        Number("tab:rows", "Bound", "Second", "0.1", "1.20", "0.03"),
        Number("tab:rows", "Bound", "Second", "0.3", "4.50", "0.06"),
    ]


def test_datasets_in_columns() -> None:
    assert list(numbers(BY_COLUMN)) == [
        Number("tab:columns", "Variant 1", "First", "0.5", "9.00", "0.10"),
        Number("tab:columns", "Variant 1", "First", "0.7", "8.00", "0.20"),
        Number("tab:columns", "Variant 1", "Second", "0.1", "7.00", "0.30"),
        Number("tab:columns", "Other (2×S)", "First", "0.5", "6.00", "0.40"),
        Number("tab:columns", "Other (2×S)", "First", "0.7", "5.00", "0.50"),
        Number("tab:columns", "Other (2×S)", "Second", "0.1", "4.00", "0.60"),
    ]


def test_tables_without_rates() -> None:
    assert list(numbers(WITHOUT_RATES)) == [
        Number("tab:plain", "Mine", "First", "", "9.10", "0.10"),
        Number("tab:plain", "Mine", "Second", "", "8.20", "0.20"),
    ]


def test_tables_one_after_another() -> None:
    alone = [number for source in (BY_ROW, BY_COLUMN, WITHOUT_RATES) for number in numbers(source)]
    assert list(numbers(BY_ROW + BY_COLUMN + WITHOUT_RATES)) == alone
    assert list(numbers("No table at all.")) == []


def test_the_file_has_one_line_per_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "paper.tex").write_text(BY_ROW)
    monkeypatch.setattr("sys.argv", ["paper_numbers", str(tmp_path / "paper.tex"), str(tmp_path / "numbers.csv")])
    paper_numbers.main()
    with (tmp_path / "numbers.csv").open(newline="") as stream:
        assert [Number(**row) for row in csv.DictReader(stream)] == list(numbers(BY_ROW))


def test_a_source_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["paper_numbers"])
    with pytest.raises(SystemExit, match=r"paper\.tex"):
        paper_numbers.main()


@pytest.mark.skipif(SOURCE is None, reason="PAPI_PAPER_TEX does not name the paper's source")
def test_the_committed_numbers_are_those_of_the_paper() -> None:
    assert SOURCE is not None
    text = Path(SOURCE).read_text()
    found = list(numbers(text))
    with paper_numbers.DEFAULT_OUT.open(newline="") as stream:
        assert [Number(**row) for row in csv.DictReader(stream)] == found
    everywhere = re.findall(r"([\d.]+) \$\\pm\$ ([\d.]+)\\%", text)
    assert {(number.mean, number.std) for number in found} == set(everywhere)
