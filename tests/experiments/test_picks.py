"""What a search found: ranks, picks and what they cost, from known numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from papi.config import RunConfig
from papi.experiments.picks import By, Judged, pick, picks_sheet, ranked, read_trial, trials_sheet
from papi.experiments.search import Trial
from papi.train import settings_for
from toy_data import make_toy_dataset

CONFIG = RunConfig(data="toy", method="cc", data_holdout=0.2)
SETTINGS = settings_for(CONFIG, make_toy_dataset())


def judged(number: int, covering: float, likelihood: float, accuracy: float | None = None) -> Judged:
    trial = Trial(number, CONFIG, replace(SETTINGS, seed=number), {"view": "weak", "optim.lr": 0.1 * number})
    values: dict[By, float] = {"covering-rate": covering, "candidate-likelihood": likelihood}
    return Judged(trial, values if accuracy is None else values | {"accuracy": accuracy})


FOUND = [
    judged(0, 0.80, -0.5, 0.61),
    judged(1, 0.90, -0.6, 0.60),
    judged(2, 0.90, -0.4, 0.66),
    judged(3, 0.7, -0.3, 0.5),
]


def test_the_highest_is_picked_and_of_equal_ones_the_first() -> None:
    assert [each.trial.number for each in ranked(FOUND, "covering-rate")] == [1, 2, 0, 3]
    picked = {
        by: pick(FOUND, by) for by in ("covering-rate", "candidate-likelihood", "accuracy", "approximated-accuracy")
    }
    assert {by: each and each.trial.number for by, each in picked.items()} == {
        "covering-rate": 1,
        "candidate-likelihood": 3,
        "accuracy": 2,
        "approximated-accuracy": None,
    }


def test_the_table_of_trials() -> None:
    sheet = trials_sheet(FOUND, "candidate-likelihood")
    assert sheet.header == ("trial", "covering rate", "candidate likelihood", "test accuracy (oracle)", "settings")
    assert [row[0] for row in sheet.rows] == ["3", "2", "0", "1"]
    assert sheet.rows[2] == ("0", "80.00%", "-0.5000", "61.00%", "view=weak optim.lr=0.0")


def test_what_each_criterion_costs() -> None:
    sheet = picks_sheet(FOUND, "covering-rate")
    assert sheet.rows == (
        ("covering rate", "1", "60.00%", "6.00"),
        ("candidate likelihood", "3", "50.00%", "16.00"),
        ("test accuracy (oracle)", "2", "66.00%", "0.00"),
        ("no search (trial 0)", "0", "61.00%", "5.00"),
    )
    assert sheet.bold == {(0, 0)}


def test_without_truth_there_is_no_cost() -> None:
    sheet = picks_sheet([judged(0, 0.8, -0.5), judged(1, 0.7, -0.4)], "covering-rate")
    assert sheet.header == ("picked by", "trial")
    assert sheet.rows == (("covering rate", "0"), ("candidate likelihood", "1"), ("no search (trial 0)", "0"))


@pytest.mark.parametrize("by", ["covering-rate", "accuracy"])
def test_nothing_found(by: By) -> None:
    assert pick([], by) is None
    assert trials_sheet([], by).rows == picks_sheet([], by).rows == ()


def test_an_unfinished_trial_has_no_values(tmp_path: Path) -> None:
    assert read_trial(FOUND[0].trial, tmp_path / "nothing") is None
