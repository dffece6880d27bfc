"""The result of all table readers: rows with their place in the file, under named columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from papi.errors import missing


@dataclass(frozen=True)
class Row:
    """One row: its place in the file, for messages, and its values by column."""

    where: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """Rows under named columns."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def require(self, column: str) -> None:
        """Raise `UserError` if a column is missing, and suggest a similar one."""
        if column not in self.columns:
            raise missing(self.path, "column", column, self.columns)

    def renamed(self, names: Mapping[str, str]) -> "Table":
        """Rename some columns."""
        rows = (
            Row(row.where, {names.get(name, name): value for name, value in row.values.items()}) for row in self.rows
        )
        return Table(self.path, tuple(names.get(name, name) for name in self.columns), tuple(rows))
