"""What decisions do to candidate sets and confidence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from papi.data.packed_rows import PackedRows
from papi.errors import UserError
from papi.runs.decisions import KINDS, Answer
from papi.runs.fixing import fix

CANDIDATES = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
CONFIDENCE = np.array([[0.3, 0.7, 0.0], [0.0, 0.9, 0.1], [0.5, 0.0, 0.5]], np.float32)


def test_one_label_by_hand() -> None:
    decided = {0: Answer("label", (0,)), 1: Answer("label", (0,))}  # the second was not among the candidates
    fixed = fix(decided, CANDIDATES, CONFIDENCE)
    assert fixed.candidates.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]
    np.testing.assert_allclose(fixed.confidence, [[1, 0, 0], [1, 0, 0], [0.5, 0, 0.5]])
    assert fixed.kept.tolist() == [0, 1, 2]
    assert "1 of them names a label" in fixed.told[1]
    doubting = np.array([[0, 0, 1], [0, 0, 1], [0.3, 0.6, 0.1]], np.float32)  # 0.6 is outside the set
    np.testing.assert_allclose(fix(decided, CANDIDATES, doubting).confidence[2], [0.75, 0, 0.25], rtol=1e-6)
    assert CANDIDATES[0, 1]  # what was given stays as it is
    np.testing.assert_allclose(CONFIDENCE[0], [0.3, 0.7, 0])


def test_other_answers_by_hand() -> None:
    fixed = fix({0: Answer("several", (1, 2)), 1: Answer("none"), 2: Answer("bad")}, CANDIDATES, CONFIDENCE)
    assert fixed.candidates[:2].tolist() == [[0, 1, 1], [1, 0, 0]]
    np.testing.assert_allclose(fixed.confidence[:2], [[0, 1, 0], [1, 0, 0]])
    assert fixed.kept.tolist() == [0, 1]
    assert fix({1: Answer("skip")}, CANDIDATES, CONFIDENCE).candidates.tolist() == CANDIDATES.tolist()


def test_packed_confidence_is_fixed_as_the_whole_matrix() -> None:
    answers = {0: Answer("several", (1, 2)), 1: Answer("none"), 2: Answer("skip")}
    whole = fix(answers, CANDIDATES, CONFIDENCE)
    packed = fix(answers, CANDIDATES, PackedRows.of(CONFIDENCE, CANDIDATES))
    assert isinstance(packed.confidence, PackedRows)
    assert packed.confidence.fits(packed.candidates)
    np.testing.assert_array_equal(np.asarray(packed.confidence), whole.confidence)


def test_a_set_that_was_not_believed_in_at_all_is_uniform() -> None:
    fixed = fix({0: Answer("several", (0, 1))}, np.array([[0, 0, 1]], bool), np.array([[0, 0, 1]], np.float32))
    assert fixed.confidence.tolist() == [[0.5, 0.5, 0]]


def test_what_cannot_be() -> None:
    with pytest.raises(UserError, match="use the answer 'bad'"):
        fix({0: Answer("none")}, np.ones((2, 3), bool), np.ones((2, 3), np.float32))
    with pytest.raises(UserError, match="all images have the answer 'bad'"):
        fix({i: Answer("bad") for i in range(3)}, CANDIDATES, CONFIDENCE)


def slow(kind: str, labels: tuple[int, ...], before: list[bool]) -> list[bool]:
    if kind == "none":
        return [not candidate for candidate in before]
    return [k in labels for k in range(len(before))] if labels else before


@given(
    st.lists(st.integers(1, 14), min_size=6, max_size=6),  # sets as bits: neither empty nor all classes
    arrays_of.arrays(np.float32, (6, 4), elements=st.floats(0, 1, width=32)),
    st.dictionaries(st.integers(0, 4), st.tuples(st.sampled_from(KINDS), st.sets(st.integers(0, 3), min_size=2))),
)
def test_sets_are_never_empty_and_confidence_lies_in_them(
    bits: list[int], confidence: np.ndarray, drawn: dict[int, tuple[str, set[int]]]
) -> None:
    candidates = np.array([[bool(each >> k & 1) for k in range(4)] for each in bits])
    wanted = {"label": lambda labels: (min(labels),), "several": lambda labels: tuple(sorted(labels))}
    answers = {i: Answer(kind, wanted.get(kind, lambda _: ())(labels)) for i, (kind, labels) in drawn.items()}  # type: ignore[arg-type]
    fixed = fix(answers, candidates, confidence)
    assert fixed.candidates.any(1).all()
    assert not fixed.confidence[~fixed.candidates].any()
    for i, answer in answers.items():
        assert fixed.candidates[i].tolist() == slow(answer.kind, answer.labels, candidates[i].tolist())
        if answer.kind not in ("bad", "skip"):
            assert fixed.confidence[i].sum() == pytest.approx(1)
    assert set(fixed.kept) == {i for i in range(6) if i not in answers or answers[i].kind != "bad"}


def test_what_others_said_goes_into_new_sets() -> None:
    """As shares of what they said about the labels; uniform where they said nothing about one of them."""
    candidates = np.array([[True, True, True, False]] * 4)
    prior = np.array([[0.5, 0.3, 0.2, 0]] * 4, np.float32)
    answers = {
        0: Answer("label", (3,)),
        1: Answer("several", (0, 1)),
        2: Answer("several", (0, 3)),
    }
    fixed = fix(answers, candidates, np.where(candidates, 1 / 3, 0), prior)
    assert fixed.prior is not None
    expected = [[0, 0, 0, 1], [0.625, 0.375, 0, 0], [0.5, 0, 0, 0.5], [0.5, 0.3, 0.2, 0]]
    np.testing.assert_allclose(fixed.prior, expected, rtol=1e-6)
    assert fix(answers, candidates, np.where(candidates, 1 / 3, 0)).prior is None
