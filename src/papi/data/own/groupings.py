"""Reads groups of classes and matrices of flip probabilities."""

from pathlib import Path

import numpy as np

from papi.data.dataset import refuse
from papi.data.own.tables import read_table, read_text
from papi.errors import UserError, unknown
from papi.files.npz import read_npy
from papi.files.reading import reason


def read_groups(path: Path, class_names: tuple[str, ...]) -> np.ndarray:
    """Read the group of each class, `(K,) int64`, from a table with the columns `class` and `group`."""
    table = read_table(path, refuse)
    for column in ("class", "group"):
        table.require(column)
    group_of: dict[str, str] = {}
    for row in table.rows:
        name, group = str(row.values["class"]).strip(), str(row.values["group"]).strip()
        if name not in class_names:
            raise UserError(f"{row.where}: {unknown('class', name, class_names)}")
        if name in group_of:
            raise UserError(f"{row.where} assigns a second group to the class {name!r}: remove one.")
        group_of[name] = group
    for name in class_names:
        if name not in group_of:
            raise UserError(f"{path} has no group for the class {name!r}: add a row for every class.")
    numbers = {group: number for number, group in enumerate(dict.fromkeys(group_of.values()))}
    return np.array([numbers[group_of[name]] for name in class_names], np.int64)


def read_matrix(path: Path, classes: int) -> np.ndarray:
    """Read a K x K matrix of probabilities with ones on the diagonal from a csv file without header or an .npy file."""
    if path.suffix == ".npy":
        try:
            matrix = read_npy(path)
        except (OSError, ValueError) as error:
            why = reason(error)
            raise UserError(f"{path} cannot be read ({why}): save it with numpy.save, without objects.") from error
    else:
        matrix = _read_numbers(path)
    if matrix.shape != (classes, classes) or matrix.dtype.kind not in "iuf":
        raise UserError(
            f"{path} must contain {classes} x {classes} numbers; got {matrix.dtype} of shape {matrix.shape}."
        )
    wrong = np.argwhere(~((matrix >= 0) & (matrix <= 1)))
    if len(wrong):
        row, column = wrong[0]
        raise UserError(
            f"{path}, row {row + 1} must contain probabilities; got {matrix[row, column]} in column {column + 1}."
        )
    row_off = np.flatnonzero(np.diag(matrix) != 1)
    if len(row_off):
        raise UserError(
            f"{path}, row {row_off[0] + 1} must have 1 on the diagonal, because the true label is always a candidate."
        )
    probabilities: np.ndarray = matrix.astype(np.float64)
    return probabilities


def _read_numbers(path: Path) -> np.ndarray:
    rows: list[list[float]] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append([float(cell) for cell in line.split(",")])
        except ValueError as error:
            raise UserError(f"{path}, line {number} must be a row of numbers separated by commas ({error}).") from error
        if len(rows[-1]) != len(rows[0]):
            raise UserError(
                f"{path}, line {number} has {len(rows[-1])} numbers, but the first row has {len(rows[0])}: use the "
                "same number in every row."
            )
    return np.array(rows, np.float64)
