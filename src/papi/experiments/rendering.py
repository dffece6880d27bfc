"""Renders tables as Markdown, LaTeX, CSV, and for the terminal."""

import csv
import io
from statistics import fmean, pstdev

import rich.table
from rich.text import Text

from papi.experiments import tables
from papi.experiments.results import Results
from papi.experiments.suites import Suite
from papi.experiments.tables import Sheet

_LATEX = str.maketrans({"±": r"$\pm$", "%": r"\%", "−": "$-$", "–": "--", "×": r"$\times$", "_": r"\_", "&": r"\&"})


def markdown(sheet: Sheet) -> str:
    """A Markdown table below its title."""
    rows = [[f"**{text}**" if bold else text for text, bold in row] for row in _marked(sheet)]
    lines = [sheet.header, ["---"] * len(sheet.header), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{sheet.title}**\n\n{table}\n"


def latex(sheet: Sheet) -> str:
    """A LaTeX `table` that needs the package booktabs."""
    rows = [
        [rf"\textbf{{{_escaped(text)}}}" if bold else _escaped(text) for text, bold in row] for row in _marked(sheet)
    ]
    lines = [" & ".join(row) + r" \\" for row in ([_escaped(text) for text in sheet.header], *rows)]
    body = "\n".join([r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"])
    shape = "l" * len(sheet.header)
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{_escaped(f'{sheet.title}. {tables.RULE}')}}}\n"
        f"\\begin{{tabular}}{{{shape}}}\n{body}\n\\end{{tabular}}\n\\end{{table}}\n"
    )


def terminal(sheet: Sheet) -> rich.table.Table:
    """A table for a rich console."""
    columns = (rich.table.Column(name, overflow="fold") for name in sheet.header)  # long settings must stay readable
    table = rich.table.Table(*columns, title=sheet.title, title_justify="left")
    for row in _marked(sheet):
        table.add_row(*(Text(text, "bold" if bold else "") for text, bold in row))
    return table


def comma_separated(suite: Suite, results: Results) -> str:
    """CSV with one line per mean, for other programs."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["table", "data", "task", "method", "epochs", "seeds", "wanted", "mean", "std", "paper_mean", "paper_std"]
    )
    for table in suite.tables:
        for task in table.tasks:
            for entry, found in tables.column(table, task, results).items():
                values = list(found.accuracies.values())
                measured = [f"{fmean(values):.2f}", f"{pstdev(values):.2f}"] if values else ["", ""]
                paper = found.published or ("", "")
                place = [table.title, task.data_label, task.label, entry.label, table.length(entry)]
                writer.writerow([*place, len(values), found.wanted, *measured, *paper])
    return stream.getvalue()


def _marked(sheet: Sheet) -> list[list[tuple[str, bool]]]:
    return [
        [(text, (number, place) in sheet.bold) for place, text in enumerate(row)]
        for number, row in enumerate(sheet.rows)
    ]


def _escaped(text: str) -> str:
    return text.translate(_LATEX)
