"""Reads MATLAB files and the partial-label feature tables in them."""

from pathlib import Path

import numpy as np

from papi.data.own.matlab import read_variables
from papi.errors import UserError, missing
from papi.files.reading import memory_bytes, read_bytes, reason


def read_mat(path: Path, needed: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read the numeric matrices in a .mat file as dense arrays. Raise `UserError` if one of `needed` is missing."""
    try:
        variables = read_variables(read_bytes(path, memory_bytes()), memory_bytes())
    except NotImplementedError as error:
        raise UserError(f"{path} is in MATLAB's format 7.3: save it again with the option -v7.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): add the published file.") from error
    except ValueError as error:
        raise UserError(f"{path} is not a readable .mat file ({reason(error)}): download it again.") from error
    for name in needed:
        if name not in variables:
            raise missing(path, "variable", name, variables)
        if variables[name] is None:
            raise UserError(f"{name} in {path} must be a matrix of numbers.")
    return {name: matrix for name, matrix in variables.items() if matrix is not None}


def read_partial_mat(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Read features `(N, d) float32`, candidate sets `(N, K) bool` and, if available, true labels `(N,)`.

    The layout is that of Southeast University's collection: `data` is N x d, `partial_target` and `target` are K x N.
    """
    content = read_mat(path, ("data", "partial_target"))
    features, sets = content["data"], content["partial_target"]
    for name, matrix in (("data", features), ("partial_target", sets)):
        if matrix.ndim != 2 or matrix.dtype.kind not in "iufb":
            raise UserError(
                f"{name} in {path} must be a matrix of numbers; got {matrix.dtype} of shape {matrix.shape}."
            )
    if sets.shape[1] != len(features):
        raise UserError(
            f"{path} has {len(features)} rows in data, but {sets.shape[1]} columns in partial_target: data must be "
            "N x d and partial_target K x N."
        )
    _require_binary(sets, "partial_target", path)
    target = content.get("target")
    if target is None:
        return features.astype(np.float32), sets.T > 0, None
    if target.shape != sets.shape:
        raise UserError(
            f"target in {path} has shape {target.shape}, but partial_target has {sets.shape}: make them equal."
        )
    _require_binary(target, "target", path)
    several = np.flatnonzero((target > 0).sum(0) != 1)
    if len(several):
        count = int((target[:, several[0]] > 0).sum())
        raise UserError(f"column {several[0] + 1} of target in {path} must have one true label; got {count}.")
    return features.astype(np.float32), sets.T > 0, target.argmax(0).astype(np.int64)


def _require_binary(matrix: np.ndarray, name: str, path: Path) -> None:
    """Raise `UserError` at the first column (a sample) with a value other than 0 and 1."""
    wrong = np.argwhere(~np.isin(matrix, (0, 1)).T)
    if len(wrong):
        sample, row = wrong[0]
        got = matrix[row, sample]
        raise UserError(f"{path}: column {sample + 1} of {name} must contain 0 and 1; got {got} in row {row + 1}.")
