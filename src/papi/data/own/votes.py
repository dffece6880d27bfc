"""Combines the votes of several annotators to candidate sets."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from papi.errors import UserError

MOST_VOTES = 10**9  # for a label; sums of such numbers do not overflow
DAWID_SKENE = "dawid-skene"
_AT_LEAST, _ELSE_UNION = "at-least-", "-else-union"


def agreed(sets: Sequence[Sequence[str]], rule: str) -> list[str]:
    """Return the candidates of one image from the labels of each annotator.

    `union` keeps every label with a vote, `at-least-N` the labels with N votes or more, and `vaguest` all labels of the
    annotator who named the most (the first, if there are several), because they most likely include the true label.
    `at-least-N-else-union` keeps every label if none has N votes. `dawid-skene` also keeps every label and estimates
    their probabilities.
    """
    if rule == "vaguest":
        longest = max((len(labels) for labels in sets), default=0)
        return next((list(labels) for labels in sets if len(labels) == longest), [])
    least = least_votes(rule)
    counts = Counter(label for labels in sets for label in labels)
    enough = [label for label, count in counts.items() if count >= least]
    return enough or (list(counts) if falls_back(rule) else [])


def enough_votes(counts: np.ndarray, rule: str, where: str) -> np.ndarray:
    """Return the candidates `(N, K) bool` from vote counts `(N, K)`."""
    enough: np.ndarray = counts >= least_votes(rule, where)
    if falls_back(rule):
        enough = np.where(enough.any(1, keepdims=True), enough, counts > 0)
    return enough


def falls_back(rule: str) -> bool:
    """Return whether all labels with a vote become candidates if none has enough votes."""
    return rule.endswith(_ELSE_UNION)


def least_votes(rule: str, where: str = "") -> int:
    """Return the number of votes that a label needs. Reject rules that need to know the annotators."""
    if rule == "vaguest" or (rule == DAWID_SKENE and where):
        raise UserError(
            f"{where} has vote counts without annotators, which --candidates.votes {rule} needs: use union or "
            "at-least-N."
        )
    return int(rule.removeprefix(_AT_LEAST).removesuffix(_ELSE_UNION)) if rule.startswith(_AT_LEAST) else 1


def require_votes(most: int, rule: str, where: str) -> None:
    """Raise a single error if no label of any image has enough votes for the rule."""
    if rule.startswith(_AT_LEAST) and not falls_back(rule) and 0 < most < least_votes(rule):
        raise UserError(
            f"no label in {where} has {least_votes(rule)} votes, the maximum is {most}: use a smaller number in "
            "--candidates.votes."
        )


def refuse_rule(rule: str, where: str) -> None:
    """Reject a rule for votes if the data have no votes, because it would have no effect."""
    if rule != "union":
        raise UserError(f"{where} has no votes: leave out --candidates.votes.")


def vote_shares(votes: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return each candidate's share of all votes for candidates: `(N, K) float32`, rows sum to one.

    Half a vote is added to each candidate, so that no share is zero.
    """
    weights = np.where(candidates, votes + 0.5, 0.0)
    shares: np.ndarray = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return shares
