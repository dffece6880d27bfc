"""Candidate generators: exact draws, golden values, and rates within four standard deviations of what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papi.data import candidates as generators
from papi.errors import UserError
from papi.randomness import draws

N, K = 20_000, 10
LABELS = np.arange(N) % K
ROWS = np.arange(N)


def assert_rate(hits: np.ndarray, expected: float) -> None:
    """Within four standard deviations of a binomial rate."""
    spread = max(expected * (1 - expected), 1e-12) ** 0.5 / hits.size**0.5
    assert abs(hits.mean() - expected) <= 4 * spread, (hits.mean(), expected)


def offsets(sets: np.ndarray) -> np.ndarray:
    """Column d: whether the label d places after the true one is in."""
    return sets[ROWS[:, None], (LABELS[:, None] + np.arange(K)) % K]


@pytest.mark.parametrize("flip_rate", [0.1, 0.5, 0.7])
def test_uniform_is_the_released_draw(flip_rate: float) -> None:
    np.random.seed(123)
    expected = np.random.uniform(0, 1, size=(N, K)) < flip_rate
    expected[ROWS, LABELS] = True
    drawn = generators.uniform(LABELS, K, flip_rate, 123)
    assert np.array_equal(drawn, expected)
    assert_rate(offsets(drawn)[:, 1:], flip_rate)


def test_many_sets_are_drawn_as_if_at_once() -> None:
    """They are drawn in blocks of rows; there are several here."""
    matrix = generators.case_matrix("pair", K, 0.4)
    expected = draws(3, "candidates class-dependent").random((N, K)) < matrix[LABELS]
    expected[ROWS, LABELS] = True
    assert np.array_equal(generators.class_dependent(LABELS, matrix, 3), expected)


def test_share_of_singletons_and_full_sets() -> None:
    assert_rate(generators.uniform(LABELS, K, 0.1, 0).sum(1) == 1, 0.9**9)
    assert_rate(generators.uniform(LABELS, K, 0.7, 0).all(1), 0.7**9)


def test_hierarchical_stays_inside_the_group() -> None:
    labels, groups = np.arange(N) % 100, np.arange(100) // 5
    drawn = generators.hierarchical(labels, groups, 0.7, 1)
    inside = groups[labels][:, None] == groups
    assert not drawn[~inside].any()
    assert drawn[ROWS, labels].all()
    assert_rate(drawn.sum(1) == 5, 0.7**4)
    assert_rate(drawn.sum(1) == 1, 0.3**4)


@pytest.mark.parametrize(("case", "mean_size"), [("01", 1.5), ("02", 1.6), ("03", 5.0), ("04", 2.8), ("pair", 1.25)])
def test_class_dependent_cases(case: str, mean_size: float) -> None:
    matrix = generators.case_matrix(case, K, 0.25)
    assert matrix.sum(1) == pytest.approx(mean_size)
    drawn = offsets(generators.class_dependent(LABELS, matrix, 3))
    for distance in range(K):
        assert_rate(drawn[:, distance], matrix[0, distance])


def test_class_dependent_takes_any_matrix() -> None:
    matrix = np.random.default_rng(0).random((K, K))
    np.fill_diagonal(matrix, 1)
    drawn = generators.class_dependent(LABELS, matrix, 3)
    for label in range(K):
        for other in range(K):
            assert_rate(drawn[label == LABELS, other], matrix[label, other])


def test_uniform_sets_are_uniform() -> None:
    drawn = generators.uniform_sets(LABELS % 4, 4, 0)
    assert not drawn.all(1).any()
    assert drawn[ROWS, LABELS % 4].all()
    codes = np.packbits(offsets4(drawn), axis=1).ravel()
    for _, count in zip(*np.unique(codes, return_counts=True), strict=True):
        assert_rate(np.arange(N) < count, 1 / 7)  # 2^3 sets with the true label, without the full one


def offsets4(sets: np.ndarray) -> np.ndarray:
    return sets[ROWS[:, None], ((LABELS % 4)[:, None] + np.arange(4)) % 4]


def test_uniform_sets_for_many_classes() -> None:
    drawn = generators.uniform_sets(np.arange(5000) % 100, 100, 0)
    assert abs(drawn.sum(1).mean() - 50.5) < 4 * (99 / 4 / 5000) ** 0.5


@pytest.mark.parametrize(("flip_rate", "missing"), [(0.5, 0.1997), (0.1, 0.133)])
def test_noisy_misses_the_truth_as_often_as_stated(flip_rate: float, missing: float) -> None:
    drawn = generators.noisy(LABELS, K, flip_rate, 0.2, 5)
    empty = (1 - flip_rate) ** 9
    assert 0.2 * (1 - empty) / (1 - 0.2 * empty) == pytest.approx(missing, abs=5e-4)
    assert drawn.any(1).all()
    assert_rate(~drawn[ROWS, LABELS], 0.2 * (1 - empty) / (1 - 0.2 * empty))
    assert_rate(offsets(drawn)[:, 1:].ravel(), flip_rate / (1 - 0.2 * empty))


def test_noisy_without_noise_keeps_the_truth() -> None:
    assert generators.noisy(LABELS, K, 0.3, 0.0, 5)[ROWS, LABELS].all()


LOGITS = np.array([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]], np.float32)


def test_instance_dependent_golden_values() -> None:
    chances = generators.instance_probabilities(LOGITS, np.array([0, 3, 1]), "released", 0.4)
    expected = [[0, 0.195123, 0.874479, 0.530398], [0.576475, 0.637103, 0.386422, 0], [0.056190, 0, 1, 0.415194]]
    assert chances == pytest.approx(np.array(expected), abs=2e-6)


def test_instance_dependent_paper_rule_always_takes_the_likeliest() -> None:
    labels = np.array([0, 3, 1])
    chances = generators.instance_probabilities(LOGITS, labels, "paper", 0.4)
    assert chances.max(1).tolist() == [1, 1, 1]
    assert chances[0] == pytest.approx(np.exp([-np.inf, -1.5, 0, -0.5]))
    assert generators.instance_dependent(labels, chances, 0)[np.arange(3), [2, 1, 2]].all()


def test_instance_dependent_rates() -> None:
    logits = np.tile(np.random.default_rng(1).normal(size=(K, K)), (N // K, 1))
    chances = generators.instance_probabilities(logits, LABELS, "released", 0.4)
    drawn = generators.instance_dependent(LABELS, chances, 9)
    assert drawn[ROWS, LABELS].all()
    for label in range(K):
        for other in set(range(K)) - {label}:
            assert_rate(drawn[label == LABELS, other], chances[label, other])


def test_instance_dependent_sets_of_dirk_golden_values() -> None:
    """Its release takes rate · K = 10, here with K = 4 at a rate of 1."""
    chances = generators.instance_probabilities(LOGITS, np.array([0, 3, 1]), "released", 1.0)
    expected = [[0, 0.487808, 1, 1], [1, 1, 0.966055, 0], [0.140475, 0, 1, 1]]
    assert chances == pytest.approx(np.array(expected), abs=2e-6)


@pytest.mark.parametrize(
    ("classes", "spread", "mean"),
    [(10, 1, 7.2), (10, 3, 4.1), (10, 6, 3.0), (100, 1, 10.9), (100, 3, 6.8), (100, 6, 4.0)],
)
def test_instance_dependent_sets_of_dirk(classes: int, spread: float, mean: float) -> None:
    """With ten classes the likeliest wrong label always joins, so that no label stands alone."""
    random = np.random.default_rng(0)
    labels = np.arange(4000) % classes
    logits = spread * random.normal(size=(len(labels), classes))
    drawn = generators.instance_dependent(
        labels, generators.instance_probabilities(logits, labels, "released", 10 / classes), 0
    )
    assert drawn.sum(1).mean() == pytest.approx(mean, abs=0.1)
    if classes == 10:
        logits[np.arange(len(labels)), labels] = -np.inf
        assert drawn[np.arange(len(labels)), logits.argmax(1)].all()
        assert drawn.sum(1).min() >= 2


@pytest.mark.parametrize("rule", ["released", "paper"])
def test_an_annotator_that_is_certain_does_no_harm(rule: str) -> None:
    logits = np.array([[1000.0, 0, 0], [0, 0, -1e30]])
    chances = generators.instance_probabilities(logits, np.array([0, 1]), rule, 0.4)
    assert np.isfinite(chances).all()
    assert ((chances >= 0) & (chances <= 1)).all()


@given(
    st.integers(2, 12),
    st.integers(1, 40),
    st.floats(0, 0.99),
    st.floats(0, 0.99),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_every_generator_gives_sets_for_any_numbers(
    classes: int, count: int, flip_rate: float, noise: float, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, classes, count)
    matrix = generators.case_matrix("pair", classes, flip_rate)
    made = [
        generators.uniform(labels, classes, flip_rate, seed),
        generators.hierarchical(labels, np.arange(classes) // 2, flip_rate, seed),
        generators.class_dependent(labels, matrix, seed),
        generators.uniform_sets(labels, classes, seed),
        generators.noisy(labels, classes, flip_rate, noise, seed),
    ]
    for sets in made:
        assert sets.dtype == bool
        assert sets.shape == (count, classes)
        assert sets.any(1).all()
    for sets in made[:-1]:
        assert sets[np.arange(count), labels].all()


def test_frequent_pairs() -> None:
    sets = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0]], bool)
    assert generators.frequent_pairs(sets, "abc", 2) == [("a", "b", 3), ("b", "c", 2)]


def test_useless_sets_are_refused() -> None:
    with pytest.raises(UserError, match="every candidate set of mine contains all 3 labels"):
        generators.require_useful(np.ones((4, 3), bool), "mine")
    with pytest.raises(UserError, match="mine has only one class"):
        generators.require_useful(np.eye(3, dtype=bool)[[1, 1]], "mine")
    with pytest.raises(UserError, match="mine has only one usable row"):
        generators.require_useful(np.eye(3, dtype=bool)[:1], "mine")
    with pytest.raises(UserError, match="mine has no usable rows"):
        generators.require_useful(np.ones((0, 3), bool), "mine")


def test_named_cases_are_for_ten_classes() -> None:
    with pytest.raises(UserError, match="needs 10 classes; got 7"):
        generators.case_matrix("01", 7, 0.5)
    with pytest.raises(UserError, match="unknown matrix '05'"):
        generators.case_matrix("05", 10, 0.5)


def test_stand_ins_by_hand() -> None:
    """Four boots, all with sneakers beside them; four sneakers, of which one has boots beside it."""
    sets = np.array([[1, 1]] * 4 + [[0, 1]] * 3 + [[1, 1]], bool)
    shares = np.eye(2)[[0] * 4 + [1] * 4]
    matrix = generators.stand_ins(sets, shares)
    assert matrix == pytest.approx(np.array([[5, 5], [2, 5]]) / 6)
    assert generators.covering_pairs(matrix, ("boot", "sneaker"), 9) == [
        ("boot", "sneaker", pytest.approx(5 / 6), pytest.approx(2 / 6))
    ]
    assert (generators.stand_ins(sets[:0], shares[:0]) == 0.5).all()
