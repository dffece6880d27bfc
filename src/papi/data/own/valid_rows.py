"""Checks the rows of an annotation file, once they are arrays."""

import posixpath
from dataclasses import replace

import numpy as np

from papi.data.own.annotation_arrays import Annotations
from papi.data.own.encoding import unlabelled_note
from papi.data.own.entries import Rules


def opened_rows(found: Annotations, rules: Rules) -> Annotations:
    """Make every class a candidate in empty training rows, if `rules.unlabelled` is set."""
    silent = ~found.candidates.any(1) & ~found.test & rules.unlabelled
    if found.votes is not None:
        silent &= ~found.votes.any(1)
    if not silent.any():
        return found
    candidates = found.candidates | silent[:, None]
    notes = (*found.notes, *unlabelled_note(found.source, candidates, silent))
    weights = found.weights
    if weights is not None:
        weights = np.where(silent[:, None], np.float32(1 / candidates.shape[1]), weights)
    return replace(found, candidates=candidates, weights=weights, notes=notes)


def checked(found: Annotations, rules: Rules) -> Annotations:
    """The valid rows: each file once, training rows with candidates, which include the true label if it is given."""
    if _is_valid(found):
        return found
    keep, missing, seen = [], 0, dict[str, str]()
    for row, where in enumerate(found.where):
        label, test = found.labels[row], found.test[row]
        if found.file_names is not None:
            name = posixpath.normpath(found.file_names[row])  # ./a.png is a.png
            if name in seen:
                rules.report(
                    f"{where} and {seen[name]} both describe {found.file_names[row]!r}: keep one row per file."
                )
                continue
            seen[name] = where
        if not test and not found.candidates[row].any():
            rules.report(
                f"{where}: no label has enough votes, but every training image needs a candidate."
                if found.votes is not None
                else f"{where}: the candidate set is empty; add candidates, or use --candidates.empty unlabelled."
            )
            continue
        if test and label < 0:
            rules.report(f"{where} is a test row without a true label: add one, or remove the row.")
            continue
        if not test and label >= 0 and not found.candidates[row, label]:
            missing += 1
            if not rules.allow_missing_truth:
                rules.report(
                    f"{where}: the true label {found.class_names[label]!r} is not among the candidates; "
                    "correct it, or allow that with --candidates.allow-missing-truth."
                )
                continue
        keep.append(row)
    result = found.taking(np.array(keep, np.int64))
    if missing and rules.allow_missing_truth:
        note = f"{missing} of {len(keep)} rows in {found.source} have a true label that is not a candidate."
        result = replace(result, notes=(*result.notes, note))
    return result


def _is_valid(found: Annotations) -> bool:
    """Whether no row has a problem, found without a loop over rows."""
    if found.file_names is not None and len(set(map(posixpath.normpath, found.file_names))) < len(found.where):
        return False
    if not found.class_names:
        return False
    known = found.labels >= 0
    inside = found.candidates[np.arange(len(known)), found.labels.clip(min=0)]
    return bool(np.where(found.test, known, found.candidates.any(1) & (inside | ~known)).all())
