"""From the votes of several annotators on an image to its candidate set."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from papi.errors import UserError

MOST_VOTES = 10**9  # for a label; far more than anybody counts, and no sum of them overflows
DAWID_SKENE = "dawid-skene"
_AT_LEAST, _ELSE_UNION = "at-least-", "-else-union"


def agreed(sets: Sequence[Sequence[str]], rule: str) -> list[str]:
    """The candidates of one image, from the labels of each annotator.

    `union` takes every label that was named, `at-least-N` the labels named by N annotators or more, and `vaguest` all
    labels of the annotator who named the most (the first, if there are several): they most likely include the truth.
    `at-least-N-else-union` takes every label where none has N votes, and `dawid-skene` every label, too: it tells which
    are likelier.
    """
    if rule == "vaguest":
        longest = max((len(labels) for labels in sets), default=0)
        return next((list(labels) for labels in sets if len(labels) == longest), [])
    least = least_votes(rule)
    counts = Counter(label for labels in sets for label in labels)
    enough = [label for label, count in counts.items() if count >= least]
    return enough or (list(counts) if falls_back(rule) else [])


def enough_votes(counts: np.ndarray, rule: str, where: str) -> np.ndarray:
    """The candidates `(N, K) bool` of images whose votes were counted, `(N, K)`."""
    enough: np.ndarray = counts >= least_votes(rule, where)
    if falls_back(rule):
        enough = np.where(enough.any(1, keepdims=True), enough, counts > 0)
    return enough


def falls_back(rule: str) -> bool:
    """Whether all labels that were named are candidates where none has enough votes."""
    return rule.endswith(_ELSE_UNION)


def least_votes(rule: str, where: str = "") -> int:
    """How many votes a label needs, for data that count votes without naming the annotators."""
    if rule == "vaguest" or (rule == DAWID_SKENE and where):
        raise UserError(
            f"{where} counts votes without saying whose they are: --candidates.votes {rule} needs a table "
            "with an annotator in each row; use union or at-least-N."
        )
    return int(rule.removeprefix(_AT_LEAST).removesuffix(_ELSE_UNION)) if rule.startswith(_AT_LEAST) else 1


def require_votes(most: int, rule: str, where: str) -> None:
    """Raise one error if no label has enough votes for the rule, instead of one for each image."""
    if rule.startswith(_AT_LEAST) and not falls_back(rule) and 0 < most < least_votes(rule):
        raise UserError(
            f"no label of {where} has {least_votes(rule)} votes: the most is {most}; "
            "give a smaller number to --candidates.votes."
        )


def refuse_rule(rule: str, where: str) -> None:
    """Raise an error if a rule for votes is given for data without votes: it would have no effect."""
    if rule != "union":
        raise UserError(f"{where} has no votes: leave out --candidates.votes.")


def vote_shares(votes: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The votes for each candidate as shares of all votes for candidates: `(N, K) float32`, rows sum to one.

    Half a vote is added to each candidate, so that none starts at zero.
    """
    weights = np.where(candidates, votes + 0.5, 0.0)
    shares: np.ndarray = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return shares
