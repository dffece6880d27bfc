"""Runs ranked without true labels, and what that costs, on rows made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papi.config import RunConfig, to_dict
from papi.errors import UserError
from papi.report.criteria import Judged, places, rank_correlation, read_judged, regrets
from papi.runs.folder import RunFolder


def judged(name: str, covering: list[float], accuracy: list[float], **config: Any) -> Judged:
    rows = [
        {"epoch": n, "covering_rate": c, "approximated_accuracy": -c, "test_accuracy": a}
        for n, (c, a) in enumerate(zip(covering, accuracy, strict=True))
    ]
    return Judged(name, {"data": "toy", "candidates": {}, **config}, rows, True, ())


def test_regret_by_hand() -> None:
    runs = [
        judged("a", [0.5, 0.9, 0.8], [0.1, 0.6, 0.7]),  # picks epoch 2: 0.1 below the best
        judged("b", [0.5, 0.9, 0.9], [0.1, 0.7, 0.6]),  # of equal ones the later: 0.1 below
        judged("c", [0.5, 0.6, 0.7], [0.1, 0.2, 0.3]),  # right
        judged("other task", [0.5, 0.1], [0.2, 0.8], data="elsewhere"),
    ]
    found = {(each.task, each.criterion): each for each in regrets(runs)}
    covering = found["toy, own sets", "covering_rate"]
    assert (covering.runs, covering.worst) == (3, pytest.approx(0.1))
    assert covering.mean == pytest.approx(0.2 / 3)
    assert covering.accuracy == pytest.approx((0.6 + 0.6 + 0.3) / 3)
    assert covering.over_epochs == pytest.approx((0.5 + 0.8660254 + 1) / 3)
    opposite = found["toy, own sets", "approximated_accuracy"]  # the first epoch of every run
    assert opposite.mean == pytest.approx((0.6 + 0.6 + 0.2) / 3)
    last = found["toy, own sets", "last"]
    assert last.mean == pytest.approx(0.1 / 3)
    assert last.over_epochs is None
    elsewhere = found["elsewhere, own sets", "covering_rate"]
    assert (elsewhere.mean, elsewhere.over_runs) == (pytest.approx(0.6), None)
    assert ("toy, own sets", "candidate_likelihood") not in found  # no row has it


def test_runs_are_ordered_among_those_judged_by_the_same_samples() -> None:
    """Two groups of three, and one run alone: in the first the criterion is right, in the second half so."""
    groups = {"first": [(0.8, 0.6), (0.9, 0.7), (0.7, 0.5)], "second": [(0.1, 0.1), (0.3, 0.2), (0.2, 0.3)]}
    runs = [
        replace(judged(f"{name}{n}", [covering], [accuracy]), parts=(name,))
        for name, ends in groups.items()
        for n, (covering, accuracy) in enumerate(ends)
    ]
    runs.append(replace(judged("alone", [0.95], [0.0]), parts=("third",)))
    covering = next(each for each in regrets(runs) if each.criterion == "covering_rate")
    assert covering.over_runs == pytest.approx((1 + 0.5) / 2)


def test_places_share_ranks_and_leave_out_what_is_missing() -> None:
    runs = [judged(name, [value], [0.5]) for name, value in (("a", 0.8), ("b", 0.9), ("c", 0.8), ("d", float("nan")))]
    assert [place.rank for place in places(runs, "covering_rate")] == [2, 1, 2, None]


def test_a_run_is_judged_by_the_epoch_it_keeps() -> None:
    run = judged("a", [0.5, 0.9, 0.8], [0.1, 0.6, 0.7], select="covering-rate")
    assert run.row["epoch"] == 1
    assert judged("a", [0.5, 0.9, 0.8], [0.1, 0.6, 0.7]).row["epoch"] == 2


@pytest.mark.parametrize(
    ("a", "b", "expected"), [([1, 2, 3], [2, 4, 9], 1), ([1, 2, 3], [3, 2, 1], -1), ([1, 1], [1, 2], None)]
)
def test_rank_correlation(a: list[float], b: list[float], expected: float | None) -> None:
    assert rank_correlation(a, b) == (expected if expected is None else pytest.approx(expected))


def test_folders_that_cannot_be_judged(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        read_judged(tmp_path)
    folder = RunFolder(tmp_path)
    folder.write_config({"identity": {}, "config": to_dict(RunConfig())})
    with pytest.raises(UserError, match="no finished epoch yet"):
        read_judged(tmp_path)
    folder.metrics_file.write_text("{half a li\n")
    with pytest.raises(UserError, match="damaged"):
        read_judged(tmp_path)
