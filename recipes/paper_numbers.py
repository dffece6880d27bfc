"""Extract the numbers in the tables of the paper's LaTeX source.

    python -m recipes.paper_numbers paper.tex [OUT]

Writes tests/experiments/paper_numbers.csv: one line per number (accuracy in %, mean and standard deviation), with its
table, method, dataset and flip rate. The tests compare it with the numbers that we report as the paper's.
"""

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "tests" / "experiments" / "paper_numbers.csv"
_TABLE = re.compile(r"\\toprule(?:\[[\w.]+\])?(.*?)\\bottomrule.*?\\label\{(.*?)\}", re.DOTALL)
_NUMBER = re.compile(r"([\d.]+) \$\\pm\$ ([\d.]+)\\%")
_SPAN = re.compile(r"\\multicolumn\{(\d+)\}\{\w+\}")
_MARKUP = re.compile(r"\\midrule|\\cellcolor\{\w+\}|\\multirow\{\d+\}\*|\\emph|\(ours\)|[{}~$]")


class Number(NamedTuple):
    """A number of the paper with its location. The flip rate is empty if the candidate sets have none."""

    table: str
    method: str
    data: str
    rate: str
    mean: str
    std: str


def numbers(source: str) -> Iterator[Number]:
    """All numbers of the form `mean ± std` in the tables of a LaTeX source, in order."""
    for body, label in _TABLE.findall(source):
        header: list[list[str]] = []
        data = ""
        for line in body.split(r"\\"):
            row = list(_cells(line))
            if not any(map(_NUMBER.search, row)):
                header.append([_plain(cell) for cell in row])
                continue
            names = [_plain(cell) for cell in row if not _NUMBER.search(cell)]
            data = names[0] or data if len(names) == 2 else ""  # the dataset is given once for all rows below it
            for place, cell in enumerate(row):
                found = _NUMBER.search(cell)
                if found:
                    above = [texts[place] for texts in header if place < len(texts)]
                    yield Number(label, names[-1], data or _dataset(above), _rate(above), *found.groups())


def _cells(line: str) -> Iterator[str]:
    """The cells of a line. A cell that spans several columns is repeated for each."""
    for cell in line.split("&"):
        span = _SPAN.search(cell)
        yield from [_SPAN.sub("", cell)] * (int(span[1]) if span else 1)


def _plain(cell: str) -> str:
    return _MARKUP.sub("", cell.replace(r"$\times$", "×")).strip()


def _dataset(header: list[str]) -> str:
    return next(text for text in header if text and not text.startswith("q ="))


def _rate(header: list[str]) -> str:
    return next((text.removeprefix("q = ") for text in header if text.startswith("q =")), "")


def main() -> None:
    """Write the numbers in the LaTeX source given on the command line."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = Path(sys.argv[2]) if len(sys.argv) == 3 else DEFAULT_OUT
    found = list(numbers(Path(sys.argv[1]).read_text()))
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Number._fields)
        writer.writerows(found)
    print(f"{out}: {len(found)} numbers from {len({number.table for number in found})} tables")


if __name__ == "__main__":
    main()
