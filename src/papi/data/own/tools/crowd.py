"""Reads the table of crowd-kit and most crowdsourcing platforms: `task`, `worker`, `label`, one row per answer."""

from papi.data.own.tables import Table

NAME = "crowd"
_COLUMNS = {"task": "file_name", "worker": "annotator"}  # label is called so here, too


def recognises(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns is one of answers, and not one that has names of ours."""
    return {"task", "worker", "label"} <= set(columns) and not {"file_name", "annotator"} & set(columns)


def as_votes(table: Table, given: str | None) -> Table:
    """The table with our names for its columns, if it is one of answers, or is `given` as one."""
    if given == NAME:
        for column in (*_COLUMNS, "label"):
            table.require(column)
    elif not recognises(table.columns):
        return table
    return table.renamed(_COLUMNS)
