"""Write lines as a table for the terminal, as JSON, and as Markdown for the performance page."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import TOLERANCE, Line

HEADINGS = ("item", "reference", "ours", "ratio", "target", "share of a step")
BEGIN, END = "<!-- benchmark -->", "<!-- /benchmark -->"


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit != "s":
        return f"{value:,.1f} {unit}"
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def cells(line: Line) -> tuple[str, ...]:
    """A row of the table."""
    is_share = line.at_most and line.unit == "s" and line.target is not None and line.target < 1
    shown = f"{line.ratio:.1%}" if is_share else f"{line.ratio:.3g}"
    sign = "≤" if line.at_most else "≥"
    target = "–" if line.target is None else f"{sign} {f'{line.target:.0%}' if is_share else f'{line.target:g}'}"
    share = "–" if line.share is None else f"{line.share:.2%}"
    both = (amount(line.reference, line.unit), amount(line.ours, line.unit))
    return (line.item, *both, "–" if line.reference is None else shown, target, share)


def print_table(lines: Sequence[Line], console: Console) -> None:
    table = Table(box=box.SIMPLE)
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number == 0 else "right", overflow="fold")
    for line in lines:
        style = "red" if line.failed() else "yellow" if line.missed() else None
        table.add_row(*cells(line), style=style)
    console.print(table)


def to_json(lines: Sequence[Line], machine: dict[str, Any]) -> str:
    rows = [asdict(line) | {"missed": line.missed(), "failed": line.failed()} for line in lines]
    return json.dumps({"machine": machine, "tolerance": TOLERANCE, "lines": rows}, indent=1) + "\n"


def read_lines(file: Path) -> tuple[list[Line], dict[str, Any]]:
    """Read what `to_json` wrote."""
    content = json.loads(file.read_text(encoding="utf-8"))
    fields = Line.__dataclass_fields__
    lines = [Line(**{name: value for name, value in row.items() if name in fields}) for row in content["lines"]]
    return lines, content["machine"]


def to_markdown(lines: Sequence[Line], machine: dict[str, Any]) -> str:
    rows = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1)), *(cells(line) for line in lines)]
    about = ", ".join(f"{name} {value}" for name, value in machine.items())
    return "\n".join([f"Measured with {about}.", "", *("| " + " | ".join(row) + " |" for row in rows)])


def fill_page(page: str, table: str) -> str:
    """The page with the table between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"
