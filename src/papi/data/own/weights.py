"""How likely each candidate is, as people write it: `rose:0.8|tulip:0.2`, or numbers beside the labels."""

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from papi.data.own.tables import WEIGHED, cell_number, split_labels


def weighed_labels(cell: object, classes: Sequence[str] | None = None) -> tuple[list[str], dict[str, float]] | str:
    """The labels of a cell and their weights, if it has any; or what is wrong with it.

    A name that ends in a colon and a number is a weight unless it is one of the `classes`. In a JSON list, names are
    names.
    """
    if isinstance(cell, str) and cell.strip().startswith("{") and cell.strip().endswith("}"):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return "candidates that are no JSON object"
    if isinstance(cell, Mapping):
        return _from_object(cell)
    labels = split_labels(cell)
    if labels is None:
        return "candidates that are no list of labels"
    if not isinstance(cell, str) or cell.strip().startswith("["):
        return labels, {}
    found = [None if classes and label in classes else WEIGHED.fullmatch(label) for label in labels]
    if not any(found):
        return labels, {}
    weights = {}
    for label, match in zip(labels, found, strict=True):
        number = None if match is None else cell_number(match[2])
        if match is None or number is None:
            return f"a weight for some candidates and none for {label!r}"
        weights[match[1]] = number / 100 if match[3] else number
    if len(weights) < len(labels):
        return "a weight twice for one label"
    return list(weights), weights


def _from_object(cell: Mapping[object, object]) -> tuple[list[str], dict[str, float]] | str:
    weights = {}
    for label, value in cell.items():
        if value is None and isinstance(label, str):  # parquet fills in the keys of other rows
            continue
        number = None if isinstance(value, bool | str) else cell_number(value)
        if not isinstance(label, str) or number is None:
            return "candidates without a number for each label"
        weights[label] = number
    return list(weights), weights


def weights_beside(labels: Sequence[str], cell: object) -> dict[str, float] | str:
    """The weights of labels that stand in another cell, in the same order; or what is wrong with them."""
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
        return "weights that are no numbers"
    if len(known) != len(labels):
        return f"{len(known)} weights for {len(labels)} candidates"
    return dict(zip(labels, known, strict=True))


def wrong_weight(weights: Mapping[str, float]) -> str | None:
    """What is wrong with weights; None if they can be used."""
    for label, weight in weights.items():
        if not 0 <= weight < math.inf:
            return f"the weight {weight} for {label!r}: zero or more is needed"
    if weights and not any(weights.values()):
        return "no weight above zero"
    return None


def shares(candidates: np.ndarray, weights: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Candidate sets `(N, K) bool` and the share `(N, K) float32` of each candidate, from weights `(N, K)`.

    Candidates are the labels with at least this share of the weight, and more than none; the likeliest always stays.
    Rows without candidates stay empty.
    """
    inside = np.where(candidates, weights, 0.0)
    inside /= inside.max(1, keepdims=True, initial=0).clip(min=np.finfo(np.float64).tiny)  # no sum overflows
    part = inside / inside.sum(1, keepdims=True).clip(min=np.finfo(np.float64).tiny)
    kept = (part >= threshold) & (part.astype(np.float32) > 0)
    rows = np.flatnonzero(part.any(1))
    kept[rows, part[rows].argmax(1)] = True
    part = np.where(kept, part, 0.0)
    whole = part.sum(1, keepdims=True)
    return kept, (part / np.where(whole > 0, whole, 1)).astype(np.float32)
