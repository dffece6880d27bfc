"""The forest that stands in for a search answers as the search would, and samplers search it."""

import json
from pathlib import Path

import numpy as np
import pytest

from recipes.samplers import Forest, compare

LABELS = ("a", "b")


def rows(count: int) -> list[dict[str, object]]:
    """Accuracy grows with the logarithm of the rate, and with the choice of `b`; the criterion is a tenth below it."""
    random = np.random.default_rng(0)
    found: list[dict[str, object]] = []
    for _ in range(count):
        rate, choice = float(10 ** random.uniform(-3, 0)), int(random.integers(2))
        accuracy = 0.5 + 0.1 * np.log10(rate) + 0.2 * choice
        values = {"optim.lr": rate, "pair": [float(random.random()), 0.5], "choice": LABELS[choice]}
        found.append({"values": values, "criterion": accuracy - 0.1, "accuracy": accuracy})
    return found


def test_the_forest_answers_as_the_trials_did() -> None:
    forest = Forest(rows(200))
    assert forest.explained > 0.9
    assert set(forest.ends) == {"optim.lr", "pair", "pair1"}
    assert forest.choices == {"choice": ["a", "b"]}
    values = {"optim.lr": np.log(0.1), "pair": 0.5, "pair1": 0.5, "choice": "b"}
    random = np.random.default_rng(0)
    judged = [forest.ask(values, 0, random) for _ in range(30)]
    assert judged[0][1] == pytest.approx(0.6, abs=0.03)
    assert np.mean([each for each, _ in judged]) == pytest.approx(0.5, abs=0.04)


def test_samplers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "toy.json").write_text(json.dumps(rows(60)))
    compare(tmp_path, repeats=2)
    assert capsys.readouterr().out.count("| toy |") == 2
