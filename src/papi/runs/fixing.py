"""What a person's decisions do to the training set: sets, confidence, and which images stay."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from papi.errors import UserError
from papi.runs.decisions import Answers, Kind
from papi.runs.labels import candidate_shares


@dataclass(frozen=True)
class Fixed:
    """The candidate sets and the confidence that training goes on with."""

    candidates: np.ndarray  # (N, K) bool
    confidence: np.ndarray  # (N, K) float32
    prior: np.ndarray | None  # (N, K) float32: what others said about the candidates
    kept: np.ndarray  # (n,) int64, rising: the images that stay; rows of what is above that are not among them go
    told: tuple[str, ...]  # what was done, a sentence each


def fix(answers: Answers, candidates: np.ndarray, confidence: np.ndarray, prior: np.ndarray | None = None) -> Fixed:
    """Take a person's answers into the sets `(N, K) bool` and the confidence `(N, K)` of a finished run.

    One label becomes the only candidate. Several labels become the set. If none of the candidates is right, the other
    classes become the set. Bad images leave. Skipped ones stay as they are. In a new set, confidence is what the old
    one said about its labels, as shares; uniform if it said nothing. So is the `prior`, what others said before: it
    is uniform also if it said nothing about one of the labels.
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
                    f"none of the candidates of image {image} is said to be right, and they are all classes: "
                    "if the image shows none of them, give the answer bad."
                )
    fixed = np.where(candidates, confidence, 0).astype(np.float32)
    doubted = np.where(candidates, 0, confidence).any(1)  # some belief went to labels outside the set
    fixed[doubted] = candidate_shares(candidates[doubted], confidence[doubted])
    changed = [image for image, answer in answers.items() if answer.labels or answer.kind == "none"]
    fixed[changed] = candidate_shares(sets[changed], confidence[changed])
    bad = [image for image, answer in answers.items() if answer.kind == "bad"]
    kept = np.setdiff1d(np.arange(len(candidates)), bad)
    if not len(kept):
        raise UserError("every image is said to be bad: there is nothing to train on.")
    if prior is not None:
        prior = _prior_in(sets, prior, changed)
    return Fixed(sets, fixed, prior, kept, _told(answers, candidates))


def _prior_in(sets: np.ndarray, prior: np.ndarray, changed: list[int]) -> np.ndarray:
    """What others said about the labels of the changed sets, as shares of them."""
    fixed: np.ndarray = prior.copy()
    inside = np.where(sets[changed], prior[changed], 0)
    silent = ((inside > 0) != sets[changed]).any(1)
    inside[silent] = sets[changed][silent]
    fixed[changed] = inside / inside.sum(1, keepdims=True)
    return fixed


def _told(answers: Answers, candidates: np.ndarray) -> tuple[str, ...]:
    """One sentence with the number of each kind of answer; another if labels come from outside the candidates."""
    count = Counter(answer.kind for answer in answers.values())
    parts: dict[Kind, str] = {
        "label": "{} with one label",
        "several": "{} with several labels, which become the candidates",
        "none": "{} that exclude all candidates",
        "bad": "{} bad images, which leave the training set",
        "skip": "{} skipped, which change nothing",
    }
    listed = ", ".join(words.format(f"{count[kind]:,}") for kind, words in parts.items() if count[kind])
    outside = sum(not candidates[image, list(answer.labels)].all() for image, answer in answers.items())
    told = f"{len(answers):,} decisions: {listed}."
    return (told, f"{outside:,} of them name a label that was not among the candidates.") if outside else (told,)
