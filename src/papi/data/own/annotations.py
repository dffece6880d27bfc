"""Reads candidate sets from a table, arrays or an export of an annotation tool.

A row of a table contains a file and its candidates: as a list, as text separated by `|`, or with one column per class
(0 or 1, a probability, or a number of votes). Instead of candidates, or in addition, `excluded` lists labels that are
wrong. A table with an `annotator` column has one vote, or one list of labels, per row.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from reprlib import repr as shortened

from papi.data.own.annotation_arrays import Annotations, first_twice, from_arrays, load_npz
from papi.data.own.columnwise import read_columnwise
from papi.data.own.encoding import encode
from papi.data.own.entries import Entry, Rules, Statement, gathered, in_classes
from papi.data.own.names import suspicions
from papi.data.own.rows import Row, Table
from papi.data.own.tables import ANYTHING, cell_number, cell_text, excluded_labels, read_table
from papi.data.own.tools.crowd import as_votes
from papi.data.own.tools.formats import format_of, read_export
from papi.data.own.valid_rows import checked, opened_rows
from papi.data.own.votes import MOST_VOTES, falls_back, least_votes, refuse_rule, require_votes
from papi.data.own.weights import weighed_labels, weights_beside, wrong_weight
from papi.errors import UserError

_LOOK_AHEAD = 1000  # rows from which a table with one column per class is recognised
RESERVED = (
    "file_name", "candidates", "excluded", "weights", "weight", "label", "split", "annotator", "true_label",
)  # fmt: skip


def read_annotations(
    path: Path, rules: Rules, classes: tuple[str, ...] | None = None, *, by_name: bool = True
) -> Annotations:
    """The candidate sets in a file. Without `classes`, the file determines them; `by_name` requires file names."""
    rules = rules.for_classes(classes)
    kind = format_of(path, rules.format)
    if kind == "npz":
        arrays = opened_rows(from_arrays(load_npz(path), path, classes, rules.votes, rules.threshold), rules)
        found = replace(checked(arrays, rules), named=frozenset(arrays.file_names or ()))
    else:
        with _collector_at_rest():
            table = kind == "table"
            found = _read_table(path, rules, classes, by_name) if table else _read_tool(path, kind, rules, classes)
    if by_name and found.file_names is None:
        raise UserError(f"{path} has no file_names: add the file name of each row.")
    return found


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Pause garbage collection: searching millions of small objects for cycles would double the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _read_table(path: Path, rules: Rules, classes: tuple[str, ...] | None, by_name: bool) -> Annotations:
    plain = read_columnwise(path, rules, classes)
    if plain is not None and (plain.file_names is not None or not by_name):
        notes = suspicions(plain.class_names, "--candidates.separator") if classes is None else ()
        found = checked(plain, rules)
        return replace(found, named=frozenset(plain.file_names or ("",)), notes=(*found.notes, *notes))
    unread: list[str] = []

    def report(problem: str) -> None:
        unread.append(problem)
        rules.report(problem)

    table = as_votes(read_table(path, report), rules.format)
    if by_name:
        table.require("file_name")
    names = frozenset(cell_text(row, "file_name") or "" for row in table.rows)
    return replace(from_table(table, rules, classes), named=None if unread else names)


def _read_tool(path: Path, kind: str, rules: Rules, classes: tuple[str, ...] | None) -> Annotations:
    """The export of a tool. Images without a label are left out, unless `rules.unlabelled` is set."""
    statements = list(read_export(path, kind, rules.column, rules.report))
    entries = gathered(statements, rules)
    kept = [entry for entry in entries if rules.unlabelled or not entry.says_nothing]
    most = max((count for entry in kept for count in entry.votes.values()), default=0)
    if not most:
        raise UserError(f"{path} has no labels: label some images, and export it again.")
    require_votes(most, rules.votes, str(path))
    found = checked(encode(kept, str(path), classes, rules, named=True, voted=True), rules)
    silent = len(entries) - len(kept)
    told = f"skipped {silent:,} unlabelled images in {path}; to use them, add --candidates.empty unlabelled."
    notes = (told,) if silent else ()
    listed = frozenset(each.file_name for each in statements)
    return replace(found, named=listed, loose=True, notes=(*notes, *found.notes))


def from_table(table: Table, rules: Rules, classes: tuple[str, ...] | None = None) -> Annotations:
    """The candidate sets of a table in any of its forms."""
    if not table.rows:
        raise UserError(f"{table.path} has no usable rows: add one per sample.")
    rules = rules.for_classes(classes)
    voted = "annotator" in table.columns
    if rules.column is not None:
        table.require(rules.column)
        table = table.renamed({rules.column: "label" if voted else "candidates"})
    table = separated(table, ("candidates", "excluded", "label") if voted else ("candidates", "excluded"), rules)
    suspected = classes is None and rules.tree is None
    if voted:
        entries = gathered(list(_statements(table, rules, classes)), rules)
    elif {"candidates", "excluded"} & set(table.columns) or (rules.by_label and "label" in table.columns):
        refuse_rule(rules.votes, str(table.path))
        entries = list(_list_entries(table, rules, classes))
        if rules.tree is not None:
            entries = [in_classes(entry, rules.tree) for entry in entries]
    else:
        entries = list(_column_entries(table, rules))
        classes = classes or tuple(name for name in table.columns if name not in RESERVED)
        voted = any(count > 1 for entry in entries for count in entry.votes.values())
    most = max((count for entry in entries for count in entry.votes.values()), default=0)
    require_votes(most, rules.votes, str(table.path))
    named = "file_name" in table.columns
    found = checked(encode(entries, str(table.path), classes, rules, named=named, voted=voted), rules)
    notes = suspicions(found.class_names, "--candidates.separator") if suspected else ()
    return replace(found, notes=(*found.notes, *notes))


def separated(table: Table, columns: Sequence[str], rules: Rules) -> Table:
    """Replace a custom separator between the labels of a cell by `|`."""
    if rules.separator is None or not set(columns) & set(table.columns):
        return table

    def cell(column: str, value: object) -> object:
        plain = isinstance(value, str) and column in columns and not value.lstrip().startswith(("[", "{"))
        return str(value).replace(rules.separator or "|", "|").strip("| ") if plain else value

    rows = (Row(row.where, {name: cell(name, value) for name, value in row.values.items()}) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _list_entries(table: Table, rules: Rules, classes: Sequence[str] | None) -> Iterator[Entry]:
    """Rows with all candidates, or all excluded labels, of an image in one cell."""
    for row in table.rows:
        found = _labels(row, "candidates", rules, classes)
        if found is not None:
            labels, weights, excluded = found
            file, label, split = cell_text(row, "file_name"), cell_text(row, "label"), _split(row)
            if rules.by_label and label and not labels and not excluded:
                labels = [label]
            yield Entry(row.where, file, labels, label, split, excluded=excluded, weights=weights)


def _statements(table: Table, rules: Rules, classes: Sequence[str] | None) -> Iterator[Statement]:
    """Rows with the answer of one annotator about one image."""
    for column in ("file_name", "label"):
        table.require(column)
    said: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        name, annotator = cell_text(row, "file_name"), cell_text(row, "annotator")
        found = _labels(row, "label", rules, classes)
        if found is None:
            continue
        labels, weights, excluded = found
        if name is None or annotator is None or not (labels or excluded or rules.unlabelled):
            rules.report(f"{row.where} needs a file_name, an annotator and a label; got {shortened(dict(row.values))}.")
            continue
        before = said.setdefault((name, annotator), [])
        twice = first_twice([*before, *labels])
        if twice is not None:
            rules.report(
                f"{row.where} repeats the vote of annotator {annotator!r} for {twice!r} on {name!r}: remove it."
            )
            continue
        before += labels
        sureness = _sureness(row, rules)
        if sureness is not None:
            true = cell_text(row, "true_label")
            yield Statement(
                row.where, name, annotator, tuple(labels), tuple(excluded), weights, sureness, true, _split(row)
            )


def _sureness(row: Row, rules: Rules) -> float | None:
    """The weight of a vote, from the column `weight`, or 1 if empty; None if it is invalid, which is reported."""
    cell = row.values.get("weight")
    number = 1.0 if cell is None or cell == "" else cell_number(cell)
    if number is None or not 0 < number < float("inf"):
        rules.report(f"{row.where} has the weight {shortened(cell)}: it must be a number above zero.")
        return None
    return number


def _labels(
    row: Row, column: str, rules: Rules, classes: Sequence[str] | None
) -> tuple[list[str], dict[str, float], list[str]] | None:
    """Labels, weights and exclusions of a row; None if they are invalid, which is reported."""
    found = weighed_labels(row.values.get(column), classes)
    excluded = excluded_labels(row.values.get("excluded"), classes)
    if isinstance(found, str) or excluded is None:
        told = found if isinstance(found, str) else "exclusions that are not a list of labels"
        cell = row.values.get(column if isinstance(found, str) else "excluded")
        rules.report(f"{row.where} has {told}: {shortened(cell)}.")
        return None
    labels, weights = found
    if str(row.values.get(column)).strip() in ANYTHING and labels[0] not in (classes or ()):
        labels = []
    beside = weights_beside(labels, row.values.get("weights"))
    if isinstance(beside, str) or (wrong := wrong_weight(beside or weights)) is not None:
        rules.report(f"{row.where} has {beside if isinstance(beside, str) else wrong}.")
        return None
    both = next((label for label in labels if label in excluded), None)
    if both is not None:
        rules.report(f"{row.where} both names and excludes {both!r}: remove one.")
        return None
    return labels, beside or weights, excluded


def _column_entries(table: Table, rules: Rules) -> Iterator[Entry]:
    """Rows with one column per class: 0 or 1, a probability, or a number of votes."""
    names = [name for name in table.columns if name not in RESERVED]
    if len(names) < 2 or not any(_numbers(row, names) for row in table.rows[:_LOOK_AHEAD]):
        table.require("candidates")  # a column with other values is a misspelt name, not a class
    if "" in names:
        raise UserError(f"{table.path} has a column without a name: name its class, or remove it.")
    least = least_votes(rules.votes, str(table.path))
    rows = [(row, _numbers(row, names)) for row in table.rows]
    weighed = _holds_probabilities(numbers for _, numbers in rows if numbers is not None)
    for row, numbers in rows:
        if numbers is None or not (weighed or all(number.is_integer() for number in numbers.values())):
            column = next(name for name in names if not _is_count(row.values.get(name)))
            got = shortened(row.values.get(column))
            rules.report(
                f"{row.where} has {got} in the column {column!r}: use 0 and 1, numbers of votes, or probabilities in "
                "all rows."
            )
            continue
        named = [name for name, number in numbers.items() if (number > 0 if weighed else number >= least)]
        if not named and falls_back(rules.votes):
            named = [name for name, number in numbers.items() if number > 0]
        file, label, split = cell_text(row, "file_name"), cell_text(row, "label"), _split(row)
        if weighed:
            yield Entry(row.where, file, named, label, split, weights={name: numbers[name] for name in named})
        else:
            yield Entry(row.where, file, named, label, split, {name: int(each) for name, each in numbers.items()})


def _holds_probabilities(rows: Iterator[dict[str, float]]) -> bool:
    """Whether all numbers are from 0 to 1, and some are strictly between."""
    between = False
    for numbers in rows:
        if any(number > 1 for number in numbers.values()):
            return False
        between = between or any(not number.is_integer() for number in numbers.values())
    return between


def _split(row: Row) -> str:
    return cell_text(row, "split") or "train"


def _numbers(row: Row, names: Sequence[str]) -> dict[str, float] | None:
    """The numbers of a row, by class; None if a cell is neither a number of votes nor a probability."""
    found = {name: _number(row.values.get(name)) for name in names}
    known = {name: number for name, number in found.items() if number is not None}
    return known if len(known) == len(found) else None


def _number(cell: object) -> float | None:
    number = 0.0 if cell is None or cell == "" else cell_number(cell)
    return number if number is not None and 0 <= number <= MOST_VOTES else None


def _is_count(cell: object) -> bool:
    number = _number(cell)
    return number is not None and number.is_integer()
