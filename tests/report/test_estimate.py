"""The estimate of labels still wrong: by hand, and its interval by simulation."""

import numpy as np
import pytest

from papi.report.estimate import EVERY, LEAST, Estimate, Plan, estimate, plan


def test_the_queue_by_hand() -> None:
    """By rank; the tenth is an audit of the first stratum, the twentieth of the second, never who was offered."""
    made = Plan((0, 12), 24, ((7, 11, 10), (23, 20, 14)))
    assert made.queue() == [*range(9), 11, 9, 10, 12, 13, 14, 15, 16, 17, 18, 23, 19, 20, 21, 22]


def test_the_estimate_by_hand() -> None:
    """One stratum of 100: four ranked, then audits 50, 60, 70, of which one is wrong."""
    made = Plan((0,), 100, ((50, 60, 70, 80),))
    wrong = {0: True, 1: True, 2: True, 3: False, 50: False, 60: True, 70: False}
    found = estimate(made, wrong)
    assert found is not None
    a, b, rest = 1 + 1 / 3, 2 + 2 / 3, 93
    assert found.wrong == pytest.approx(rest * a / (a + b))
    variance = rest * a * b * (a + b + rest) / ((a + b) ** 2 * (a + b + 1))
    spread = 1.75 * variance**0.5 / (2 * found.wrong**0.5)
    assert found.low == int(max(0, found.wrong**0.5 - spread) ** 2)
    assert found.high == int((found.wrong**0.5 + spread) ** 2) + 1
    assert estimate(made, dict.fromkeys(range(4), False)) is None  # no audits yet
    assert estimate(made, dict.fromkeys(range(100), True)) == Estimate(0.0, 0, 0)


def test_decisions_made_at_will_are_subtracted() -> None:
    """A search that found 10 wrong labels takes them off what the audits say of all."""
    made = Plan((0,), 200, (tuple(range(199, 0, -1)),))
    audits = {place: place % 2 == 0 for place in range(190, 200)}
    before, after = estimate(made, audits), estimate(made, audits | dict.fromkeys(range(20, 40, 2), True))
    assert before is not None
    assert after is not None
    assert after.wrong == pytest.approx(before.wrong - 10)


def test_skipped_images_count_nowhere() -> None:
    made = Plan((0,), 50, (tuple(range(49, 9, -1)),))
    wrong = {0: True, 49: False, 47: True, 46: False, 45: False}
    assert estimate(made, wrong) is None  # 48 is missing
    found = estimate(made, wrong, skipped=[48, 1])
    assert found is not None
    assert found.wrong == pytest.approx(43 * (1 + 1 / 3) / 5)


def test_strata_share_the_spread() -> None:
    chance = np.linspace(0.5, 0.0, 3000)
    made = plan(chance, 0)
    assert made.starts[0] == 0
    p = np.clip(chance, 0.02, 0.98)
    sums = [part.sum() for part in np.split(np.sqrt(p * (1 - p)), made.starts[1:])]
    assert max(sums) - min(sums) < 2
    assert plan(chance, 0) == made != plan(chance, 1)
    for start, end, order in zip(made.starts, [*made.starts[1:], 3000], made.audits, strict=True):
        assert len(set(order)) == len(order)
        assert all(start <= place < end for place in order)
    assert sorted(made.queue()) == list(range(3000))


@pytest.mark.parametrize("images", [0, 1, 2, 5])
def test_few_images(images: int) -> None:
    made = plan(np.full(images, 0.5), 0)
    assert sorted(made.queue()) == list(range(images))
    assert estimate(made, {}) == (Estimate(0.0, 0, 0) if not images else None)


WORLDS = {
    "as the model says": lambda chance: chance,
    "too sure of itself": lambda chance: np.clip(2 * chance, 0, 1),
    "too modest": lambda chance: 0.3 * chance,
    "no idea": lambda chance: np.full(len(chance), 0.1),
    "the wrong way round": lambda chance: chance[::-1],
    "nearly all right": lambda chance: 0.05 * chance,
}


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_covers_the_truth(world: str) -> None:
    """Over populations and moments at which a person looks: about nine times in ten, whatever the model is worth."""
    random = np.random.default_rng(1)
    covered = []
    for seed in range(60):
        chance = np.sort(random.beta(0.4, 2.2, 900))[::-1]
        truth = random.random(900) < WORLDS[world](chance)
        made = plan(chance, seed)
        queue = made.queue()
        for count in (EVERY * 3 * LEAST, 180, 420):
            decided = {place: bool(truth[place]) for place in queue[:count]}
            found = estimate(made, decided)
            assert found is not None
            covered.append(found.low <= truth.sum() - sum(decided.values()) <= found.high)
    assert np.mean(covered) >= 0.86, np.mean(covered)  # 180 looks: 0.90 ± 0.045


def test_a_person_who_searches_does_not_spoil_the_estimate() -> None:
    """They find half of the wrong labels of the middle on their own."""
    random = np.random.default_rng(2)
    covered = []
    for seed in range(60):
        chance = np.sort(random.beta(0.4, 2.2, 900))[::-1]
        truth = random.random(900) < chance
        made = plan(chance, seed)
        found_by_search = [place for place in range(300, 900) if truth[place] and random.random() < 0.5]
        decided = {place: bool(truth[place]) for place in [*made.queue()[:300], *found_by_search]}
        found = estimate(made, decided)
        assert found is not None
        covered.append(found.low <= truth.sum() - sum(decided.values()) <= found.high)
    assert np.mean(covered) >= 0.8
