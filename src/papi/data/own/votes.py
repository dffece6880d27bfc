"""From what several annotators say about an image to the set of labels it may have."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from papi.errors import UserError

_AT_LEAST = "at-least-"


def agreed(sets: Sequence[Sequence[str]], rule: str) -> list[str]:
    """The candidates of one image from the labels of each annotator, by a rule.

    `union` takes every label somebody named, `at-least-N` those of N annotators or more, `vaguest` the labels of the
    annotator who named the most (the first of them, if several did): the truth is likeliest to be among those.
    """
    if rule == "vaguest":
        longest = max((len(labels) for labels in sets), default=0)
        return next((list(labels) for labels in sets if len(labels) == longest), [])
    least = least_votes(rule)
    counts = Counter(label for labels in sets for label in labels)
    return [label for label, count in counts.items() if count >= least]


def least_votes(rule: str, where: str = "") -> int:
    """How many votes a label needs, for counted votes: `where` nobody knows whose votes they are."""
    if rule == "vaguest":
        raise UserError(
            f"{where} counts votes without saying whose they are: --candidates.votes vaguest needs a table "
            "with an annotator in each row; use union or at-least-N."
        )
    return int(rule.removeprefix(_AT_LEAST)) if rule.startswith(_AT_LEAST) else 1


def require_votes(most: int, rule: str, where: str) -> None:
    """Stop if no label of all has the votes a rule asks for: one sentence, not one for each image."""
    if rule.startswith(_AT_LEAST) and 0 < most < least_votes(rule):
        raise UserError(
            f"no label of {where} has {least_votes(rule)} votes: the most is {most}; "
            "give a smaller number to --candidates.votes."
        )


def refuse_rule(rule: str, where: str) -> None:
    """Stop if a rule for votes is given with data that have none: it would decide nothing."""
    if rule != "union":
        raise UserError(f"{where} has no votes: leave out --candidates.votes.")


def vote_shares(votes: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The votes for each candidate as shares of all votes for candidates: `(N, K) float32`, rows sum to one.

    A candidate always keeps a little, so that a method can still be convinced of it: half a vote is added to each.
    """
    weights = np.where(candidates, votes + 0.5, 0.0)
    shares: np.ndarray = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return shares
