"""The consensus of annotators, against a slow, literal version and against values that crowd-kit has computed."""

import json
from pathlib import Path

import numpy as np
import pytest

from papi.data.dataset import Opinions
from papi.data.own.agreement import annotators, disagreements
from papi.data.own.dawid_skene import consensus, vote_prior
from papi.errors import UserError

# DawidSkene(n_iter=2000, tol=0).fit_predict_proba(answers) of crowd-kit 1.4.2; answers are task, worker, label.
GOLDEN = json.loads((Path(__file__).parent / "dawid_skene.json").read_text())


def drawn(images: int, skills: list[float], classes: int, seed: int, several: bool = False) -> tuple[np.ndarray, ...]:
    """Opinions of annotators who are right as often as their skill says, and the truth."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, classes, images)
    rows = []
    for image in range(images):
        for annotator, skill in enumerate(skills):
            if random.random() < 0.8:
                labels = {int(truth[image]) if random.random() < skill else int(random.integers(classes))}
                if several and random.random() < 0.3:
                    labels.add(int(random.integers(classes)))
                rows += [(image, annotator, label) for label in sorted(labels)]
    return np.array(rows), truth


def literal(
    opinions: np.ndarray, rows: int, people: int, classes: int, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expectation maximisation as it is written down, one answer at a time."""
    answers: dict[tuple[int, int], list[int]] = {}
    for row, person, label in opinions.tolist():
        answers.setdefault((row, person), []).append(label)
    posterior = np.zeros((rows, classes))
    for (row, _), labels in answers.items():
        for label in labels:
            posterior[row, label] += 1 / len(labels)
    for row in range(rows):
        posterior[row] = posterior[row] / posterior[row].sum() if posterior[row].sum() else 1 / classes

    def learned() -> tuple[np.ndarray, np.ndarray]:
        confusion = np.full((people, classes, classes), 0.0)
        for (row, person), labels in answers.items():
            for true in range(classes):
                for label in labels:
                    confusion[person, true, label] += posterior[row, true] / len(labels)
        confusion = np.maximum(confusion, 1e-10)
        return posterior.mean(0), confusion / confusion.sum(2, keepdims=True)

    for _ in range(steps):
        frequency, confusion = learned()
        for row in range(rows):
            likelihood = np.log(frequency)
            for (other, person), labels in answers.items():
                if other == row:
                    for label in labels:
                        likelihood = likelihood + np.log(confusion[person, :, label]) / len(labels)
            posterior[row] = np.exp(likelihood - likelihood.max())
            posterior[row] /= posterior[row].sum()
    return posterior, *reversed(learned())


@pytest.mark.parametrize("several", [False, True])
def test_a_slow_literal_version(several: bool) -> None:
    opinions, _ = drawn(25, [0.9, 0.7, 0.4], 4, 1, several)
    found = consensus(opinions, 26, 3, 4, steps=7, tolerance=0)  # nobody has an opinion on the last image
    posterior, confusion, frequency = literal(opinions, 26, 3, 4, 7)
    np.testing.assert_allclose(found.posterior, posterior, atol=1e-9)
    np.testing.assert_allclose(found.confusion, confusion, atol=1e-9)
    np.testing.assert_allclose(found.frequency, frequency, atol=1e-9)


def test_golden_values() -> None:
    opinions = np.array(GOLDEN["opinions"])
    found = consensus(opinions, 30, 5, 3, steps=5000, tolerance=0)
    np.testing.assert_allclose(found.posterior, GOLDEN["posterior"], atol=1e-8)
    np.testing.assert_allclose(found.frequency, GOLDEN["frequency"], atol=1e-8)
    np.testing.assert_allclose(found.confusion, GOLDEN["confusion"], atol=1e-8)


def test_good_annotators_are_told_from_bad_ones() -> None:
    opinions, truth = drawn(400, [0.95, 0.9, 0.5, 0.3, 0.2], 5, 0)
    found = consensus(opinions, 400, 5, 5)
    assert (np.argsort(-found.accuracy) == np.arange(5)).all()
    votes = np.zeros((400, 5))
    np.add.at(votes, (opinions[:, 0], opinions[:, 2]), 1)
    assert (found.posterior.argmax(1) == truth).mean() > (votes.argmax(1) == truth).mean() + 0.02
    np.testing.assert_allclose(found.posterior.sum(1), 1)


def test_a_habit_is_seen_through() -> None:
    """One annotator swaps two classes, always: their word is worth as much as a right one."""
    opinions, truth = drawn(300, [0.9, 0.9, 0.9], 3, 2)
    swapped = opinions.copy()
    mine = swapped[:, 1] == 2
    swapped[mine, 2] = np.array([1, 0, 2])[swapped[mine, 2]]
    found = consensus(swapped, 300, 3, 3)
    assert (found.posterior.argmax(1) == truth).mean() > 0.9
    people = annotators(Opinions(("Ann", "Bob", "Cem"), swapped, 300), ("cat", "dog", "fox"))
    assert people[0].name == "Cem"
    assert people[0].habit is not None
    assert set(people[0].habit[:2]) == {"cat", "dog"}


def test_the_prior_keeps_every_candidate() -> None:
    opinions, _ = drawn(40, [0.9, 0.5, 0.5], 4, 3)
    candidates = np.zeros((40, 4), bool)
    candidates[opinions[:, 0], opinions[:, 2]] = True
    rows = np.flatnonzero(candidates.any(1))
    prior = vote_prior(Opinions(("a", "b", "c"), opinions, 40), candidates)
    assert prior.dtype == np.float32
    assert ((prior > 0) == candidates).all()
    np.testing.assert_allclose(prior[rows].sum(1), 1, atol=1e-6)


def test_who_disagrees_with_whom() -> None:
    said = [(row, person, label) for row in range(10) for person, label in enumerate((0, 0, 1 if row < 4 else 0))]
    pairs = disagreements(Opinions(("Ann", "Bob", "Cem"), np.array(said), 10), 2)
    assert [(pair.first, pair.second, pair.common, pair.differing) for pair in pairs] == [
        ("Ann", "Cem", 10, 4),
        ("Bob", "Cem", 10, 4),
        ("Ann", "Bob", 10, 0),
    ]
    assert disagreements(Opinions(("Ann", "Bob", "Cem"), np.array(said)[:9], 3), 2) == []  # too few in common


def test_too_much_for_the_memory_is_refused() -> None:
    with pytest.raises(UserError, match="does not fit into memory"):
        consensus(np.zeros((1, 3), np.int64), 1, 10**5, 1000)
    people = annotators(Opinions(tuple(map(str, range(10**5))), np.zeros((1, 3), np.int64), 1), ("a",) * 1000)
    assert people[0].accuracy is None
    assert (people[0].name, people[0].images) == ("0", 1)
