"""MATLAB files, and the feature tables of partial-label learning in them."""

from pathlib import Path

import numpy as np

from papi.data.own.matlab import read_variables
from papi.errors import UserError, unknown
from papi.files.reading import memory_bytes, read_bytes, reason


def read_mat(path: Path, needed: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The matrices of numbers in a .mat file as dense arrays, or an error if one of `needed` is missing."""
    try:
        variables = read_variables(read_bytes(path, memory_bytes()), memory_bytes())
    except NotImplementedError as error:
        raise UserError(f"{path} is in MATLAB's format 7.3: save it again with the option -v7.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {reason(error)}. Put the published file there.") from error
    except ValueError as error:
        raise UserError(f"{path} is not a readable .mat file ({reason(error)}). Fetch it again.") from error
    for name in needed:
        if name not in variables:
            raise UserError(f"{path} lacks a variable: {unknown('variable', name, variables)}")
        if variables[name] is None:
            raise UserError(f"{name} of {path} is something else: a matrix of numbers is needed.")
    return {name: matrix for name, matrix in variables.items() if matrix is not None}


def read_partial_mat(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Features `(N, d) float32`, candidate sets `(N, K) bool` and true labels `(N,)`, if given, of a feature table.

    The layout is that of the sets collected at Southeast University: `data` is N x d, `partial_target` and `target`
    are K x N.
    """
    content = read_mat(path, ("data", "partial_target"))
    features, sets = content["data"], content["partial_target"]
    for name, matrix in (("data", features), ("partial_target", sets)):
        if matrix.ndim != 2 or matrix.dtype.kind not in "iufb":
            raise UserError(
                f"{name} of {path} is {matrix.dtype} of shape {matrix.shape}: a matrix of numbers is needed."
            )
    if sets.shape[1] != len(features):
        raise UserError(
            f"{path} has {len(features)} rows in data and {sets.shape[1]} columns in partial_target: "
            "data is N x d and partial_target K x N."
        )
    _require_binary(sets, "partial_target", path)
    target = content.get("target")
    if target is None:
        return features.astype(np.float32), sets.T > 0, None
    if target.shape != sets.shape:
        raise UserError(f"target of {path} is {target.shape} and partial_target {sets.shape}: they must agree.")
    _require_binary(target, "target", path)
    several = np.flatnonzero((target > 0).sum(0) != 1)
    if len(several):
        count = int((target[:, several[0]] > 0).sum())
        raise UserError(f"column {several[0] + 1} of target of {path} has {count} true labels: one is needed.")
    return features.astype(np.float32), sets.T > 0, target.argmax(0).astype(np.int64)


def _require_binary(matrix: np.ndarray, name: str, path: Path) -> None:
    """Stop at the first column, which is a sample, with anything but 0 and 1."""
    wrong = np.argwhere(~np.isin(matrix, (0, 1)).T)
    if len(wrong):
        sample, row = wrong[0]
        got = matrix[row, sample]
        raise UserError(f"{path}: column {sample + 1} of {name} has {got} in row {row + 1}: 0 and 1 are needed.")
