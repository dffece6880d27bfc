"""Applies a person's decisions to the training set: candidate sets, confidence, and removed images."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from papi.data.packed_rows import Matrix, PackedRows
from papi.errors import UserError
from papi.runs.decisions import Answers, Kind
from papi.runs.labels import candidate_shares


@dataclass(frozen=True)
class Fixed:
    """The candidate sets and the confidence for further training."""

    candidates: np.ndarray  # (N, K) bool
    confidence: Matrix  # (N, K) float32
    prior: np.ndarray | None  # (N, K) float32: prior over the candidates
    kept: np.ndarray  # (n,) int64, sorted: the images to keep; the other rows are removed
    told: tuple[str, ...]  # messages about the changes


def fix(answers: Answers, candidates: np.ndarray, confidence: Matrix, prior: np.ndarray | None = None) -> Fixed:
    """Take a person's answers into the sets `(N, K) bool` and the confidence `(N, K)` of a finished run.

    One label becomes the only candidate. Several labels become the candidate set. If none of the candidates is right,
    the other classes become the set. Bad images are removed. Skipped images do not change. In a new set, the old
    confidence is renormalised over its labels; it is uniform if all were zero. The same applies to the `prior`, which
    is also uniform if it was zero for one of the labels.
    """
    sets = candidates.copy()
    for image, answer in answers.items():
        if answer.labels:
            sets[image] = False
            sets[image, list(answer.labels)] = True
        elif answer.kind == "none":
            sets[image] = ~candidates[image]
            if not sets[image].any():
                raise UserError(
                    f"image {image} has the answer 'none', but all classes are its candidates: use the answer 'bad' if "
                    "the image shows none of them."
                )
    changed = [image for image, answer in answers.items() if answer.labels or answer.kind == "none"]
    fixed = _confidence_in(sets, candidates, confidence, np.array(changed, np.int64))
    bad = [image for image, answer in answers.items() if answer.kind == "bad"]
    kept = np.setdiff1d(np.arange(len(candidates)), bad)
    if not len(kept):
        raise UserError("all images have the answer 'bad': keep some to train on.")
    if prior is not None:
        prior = _prior_in(sets, prior, changed)
    return Fixed(sets, fixed, prior, kept, _told(answers, candidates))


def _confidence_in(sets: np.ndarray, candidates: np.ndarray, confidence: Matrix, changed: np.ndarray) -> Matrix:
    """The confidence in the new sets, which differ from the candidates in the changed rows alone."""
    decided = candidate_shares(sets[changed], confidence[changed]).astype(np.float32)
    if isinstance(confidence, PackedRows):
        new = PackedRows.of(decided, sets[changed])
        order = np.arange(len(confidence))
        order[changed] = len(confidence) + np.arange(len(changed))
        return confidence.followed_by(new).taking(order)
    fixed = np.where(candidates, confidence, 0).astype(np.float32)
    doubted = np.where(candidates, 0, confidence).any(1)  # some confidence is outside the set
    fixed[doubted] = candidate_shares(candidates[doubted], confidence[doubted])
    fixed[changed] = decided
    return fixed


def _prior_in(sets: np.ndarray, prior: np.ndarray, changed: list[int]) -> np.ndarray:
    """Renormalise the prior over the labels of the changed sets."""
    fixed: np.ndarray = prior.copy()
    inside = np.where(sets[changed], prior[changed], 0)
    silent = ((inside > 0) != sets[changed]).any(1)
    inside[silent] = sets[changed][silent]
    fixed[changed] = inside / inside.sum(1, keepdims=True)
    return fixed


def _told(answers: Answers, candidates: np.ndarray) -> tuple[str, ...]:
    """Return a message with the number of each kind of answer, and one about labels outside the candidates."""
    count = Counter(answer.kind for answer in answers.values())
    parts: dict[Kind, str] = {
        "label": "{} with one label",
        "several": "{} with several labels, which become the candidates",
        "none": "{} that exclude all candidates",
        "bad": "{} bad images, which are removed",
        "skip": "{} skipped",
    }
    listed = ", ".join(words.format(f"{count[kind]:,}") for kind, words in parts.items() if count[kind])
    outside = sum(not candidates[image, list(answer.labels)].all() for image, answer in answers.items())
    told = f"{len(answers):,} decision{'' if len(answers) == 1 else 's'}: {listed}."
    if not outside:
        return (told,)
    return told, f"{outside:,} of them {'names' if outside == 1 else 'name'} a label that was not a candidate before."
