"""Votes become candidate sets by a rule, and shares that leave every candidate a chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.data.own.votes import agreed, least_votes, refuse_rule, require_votes, vote_shares
from papi.errors import UserError

annotators = st.lists(st.lists(st.sampled_from("abcde"), unique=True, max_size=4), max_size=6)


@given(annotators)
def test_union_takes_every_label(sets: list[list[str]]) -> None:
    assert sorted(agreed(sets, "union")) == sorted({label for labels in sets for label in labels})


@given(annotators, st.integers(1, 5))
def test_at_least_so_many_annotators(sets: list[list[str]], least: int) -> None:
    expected = {label for label in "abcde" if sum(label in labels for labels in sets) >= least}
    found = agreed(sets, f"at-least-{least}")
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(annotators)
def test_the_vaguest_annotator_is_the_first_of_the_longest(sets: list[list[str]]) -> None:
    found = agreed(sets, "vaguest")
    if not sets:
        assert found == []
        return
    longest = max(map(len, sets))
    assert len(found) == longest
    assert found == sets[[len(labels) for labels in sets].index(longest)]


@given(annotators, st.integers(1, 4))
def test_more_votes_needed_mean_fewer_candidates(sets: list[list[str]], least: int) -> None:
    assert set(agreed(sets, f"at-least-{least + 1}")) <= set(agreed(sets, f"at-least-{least}"))
    assert set(agreed(sets, "at-least-1")) == set(agreed(sets, "union"))


def test_counted_votes_do_not_tell_who_voted() -> None:
    assert (least_votes("union"), least_votes("at-least-3")) == (1, 3)
    with pytest.raises(UserError, match=r"t.csv has vote counts .* use union or at-least-N"):
        least_votes("vaguest", "t.csv")


def test_a_rule_that_no_label_meets() -> None:
    require_votes(3, "at-least-3", "t.csv")
    require_votes(1, "union", "t.csv")
    require_votes(0, "at-least-3", "t.csv")  # there are no votes: that is another problem
    with pytest.raises(UserError, match=r"no label in t.csv has 3 votes, the maximum is 2"):
        require_votes(2, "at-least-3", "t.csv")


def test_a_rule_without_votes() -> None:
    refuse_rule("union", "t.csv")
    with pytest.raises(UserError, match=r"t.csv has no votes: leave out --candidates.votes"):
        refuse_rule("vaguest", "t.csv")


@given(st.integers(1, 20), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_shares_are_a_distribution_over_the_candidates(count: int, classes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    votes = random.integers(0, 6, (count, classes))
    candidates = votes > 0
    candidates[np.arange(count), random.integers(0, classes, count)] = True
    shares = vote_shares(votes, candidates)
    assert shares.dtype == np.float32
    assert shares.sum(1) == pytest.approx(np.ones(count), abs=1e-6)
    np.testing.assert_array_equal(shares > 0, candidates)
    order = np.argsort(np.where(candidates, votes, -1), axis=1)
    assert (np.diff(np.take_along_axis(shares, order, 1), axis=1) >= 0).all()  # more votes never mean a smaller share
