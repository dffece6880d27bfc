"""What labels tell of each other, and what became of each class."""

from dataclasses import replace

import numpy as np

from papi.report.standins import outcomes, standins, vanished
from runs_in_memory import run_of


def test_labels_that_stand_beside_others() -> None:
    run = run_of([[0.9, 0.1, 0.0]] * 8 + [[0.0, 1.0, 0.0]] * 4 + [[0.0, 0.0, 1.0]] * 4)
    found = standins(run)
    assert found is not None
    assert "“a” also have the candidate “b”" in found.pairs[0]
    assert "Matrix" in found.chart.alt
    assert standins(run_of([[1.0, 0.0], [0.0, 1.0]])) is None  # no image has two labels


def test_labels_that_stand_together_by_chance_are_said_to() -> None:
    random = np.random.default_rng(0)
    sets = random.random((900, 4)) < 0.5
    labels = np.arange(900) % 4
    sets[np.arange(900), labels] = True
    belief = np.where(sets, 0.01, 0) + 0.9 * np.eye(4)[labels]
    found = standins(run_of(belief.tolist()))
    assert found is not None
    assert len(found.pairs) == 1
    assert "random" in found.pairs[0]


def test_a_class_that_vanished_is_named() -> None:
    run = run_of([[0.91, 0.09, 0.0], [0.95, 0.05, 0.0], [0.6, 0.0, 0.4]])
    found = outcomes(run)
    assert [(each.name, each.images, each.possible) for each in found] == [("a", 3, 3), ("b", 0, 2), ("c", 0, 1)]
    np.testing.assert_allclose(found[0].sure, 2 / 3)
    assert vanished(found) == ["b", "c"]
    assert vanished(outcomes(run_of([[0.6, 0.4], [0.4, 0.6]]))) == []


def test_classes_of_a_group_stand_together() -> None:
    run = run_of([[0.9, 0.1, 0, 0], [0.9, 0, 0, 0.1], [0, 0, 1, 0], [0, 0.9, 0, 0.1], [0, 0, 1, 0], [0, 0, 1, 0]])
    assert run.dataset is not None
    assert {each.group for each in outcomes(run)} == {""}
    run.dataset = replace(run.dataset, levels=(("Roses", "Lilies", "Roses", "d"),))
    found = outcomes(run)
    assert [(each.group, each.name, each.images) for each in found] == [
        ("Roses", "c", 3),
        ("Roses", "a", 2),
        ("Lilies", "b", 1),
        ("d", "d", 0),
    ]
    run.dataset = replace(run.dataset, levels=(("P", "P", "Q", "Q"), ("X", "Y", "Z", "Z")))
    assert [each.group for each in outcomes(run)] == ["P › X", "P › Y", "Q › Z", "Q › Z"]


def test_a_class_that_nobody_named_has_not_vanished() -> None:
    run = run_of([[0.6, 0.4], [0.4, 0.6]])
    run.class_names = ("a", "b", "c")
    run.candidates = np.array([[1, 1, 0], [1, 1, 0]], bool)
    run.kept = type(run.kept)(np.array([[0.6, 0.4, 0], [0.4, 0.6, 0]], np.float32))
    assert vanished(outcomes(run)) == []
