"""Reads the weights of candidates: `rose:0.8|tulip:0.2`, or numbers in a separate column."""

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from papi.data.own.tables import WEIGHED, cell_number, split_labels


def weighed_labels(cell: object, classes: Sequence[str] | None = None) -> tuple[list[str], dict[str, float]] | str:
    """Return the labels of a cell and their weights, if there are any, or a description of the problem.

    A colon and a number at the end of a name are its weight unless the name is one of the `classes`. In a JSON list,
    names are never split.
    """
    if isinstance(cell, str) and cell.strip().startswith("{") and cell.strip().endswith("}"):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return "candidates that are not a JSON object"
    if isinstance(cell, Mapping):
        return _from_object(cell)
    labels = split_labels(cell)
    if labels is None:
        return "candidates that are not a list of labels"
    if not isinstance(cell, str) or cell.strip().startswith("["):
        return labels, {}
    found = [None if classes and label in classes else WEIGHED.fullmatch(label) for label in labels]
    if not any(found):
        return labels, {}
    weights = {}
    for label, match in zip(labels, found, strict=True):
        number = None if match is None else cell_number(match[2])
        if match is None or number is None:
            return f"weights for some candidates, but none for {label!r}"
        weights[match[1]] = number / 100 if match[3] else number
    if len(weights) < len(labels):
        return "two weights for one label"
    return list(weights), weights


def _from_object(cell: Mapping[object, object]) -> tuple[list[str], dict[str, float]] | str:
    weights = {}
    for label, value in cell.items():
        if value is None and isinstance(label, str):  # parquet adds the keys of other rows
            continue
        number = None if isinstance(value, bool | str) else cell_number(value)
        if not isinstance(label, str) or number is None:
            return "candidates without a number for each label"
        weights[label] = number
    return list(weights), weights


def weights_beside(labels: Sequence[str], cell: object) -> dict[str, float] | str:
    """Return the weights of labels from another cell, in the same order, or a description of the problem."""
    if cell is None or cell == "":
        return {}
    if isinstance(cell, Mapping):
        found = _from_object(cell)
        if not isinstance(found, str) and set(found[0]) != set(labels):
            return "weights for other labels than its candidates"
        return found if isinstance(found, str) else found[1]
    parts = cell.split("|") if isinstance(cell, str) else cell if isinstance(cell, list) else [cell]
    numbers = [cell_number(part) for part in parts]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return "weights that are not numbers"
    if len(known) != len(labels):
        return f"{len(known)} weights for {len(labels)} candidates"
    return dict(zip(labels, known, strict=True))


def wrong_weight(weights: Mapping[str, float]) -> str | None:
    """Return a description of the problem with weights; None if they are valid."""
    for label, weight in weights.items():
        if not 0 <= weight < math.inf:
            return f"the weight {weight} for {label!r}, which must be zero or more"
    if weights and not any(weights.values()):
        return "no weight above zero"
    return None


def shares(candidates: np.ndarray, weights: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute candidate sets `(N, K) bool` and the share `(N, K) float32` of each candidate from weights `(N, K)`.

    Candidates are the labels with a positive share of at least `threshold`; the most likely label is always kept. Rows
    without candidates stay empty.
    """
    inside = np.where(candidates, weights, 0.0)
    inside /= inside.max(1, keepdims=True, initial=0).clip(
        min=np.finfo(np.float64).tiny
    )  # prevents overflow of the sum
    part = inside / inside.sum(1, keepdims=True).clip(min=np.finfo(np.float64).tiny)
    kept = (part >= threshold) & (part.astype(np.float32) > 0)
    rows = np.flatnonzero(part.any(1))
    kept[rows, part[rows].argmax(1)] = True
    part = np.where(kept, part, 0.0)
    whole = part.sum(1, keepdims=True)
    return kept, (part / np.where(whole > 0, whole, 1)).astype(np.float32)
