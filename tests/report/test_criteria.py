"""Runs ranked without true labels, and what that costs, on rows made by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.config import CandidatesConfig, RunConfig, Select, to_dict
from papi.errors import UserError
from papi.report.criteria import Judged, places, rank_correlation, read_judged, regrets
from papi.runs.folder import RunFolder
from papi.runs.schema import Record
from runs_in_memory import epochs

Make = Callable[..., RunFolder]


def judged(
    name: str, covering: list[float], accuracy: list[float], *, task: str = "toy", select: Select = "last"
) -> Judged:
    opposite = [-value for value in covering]
    rows = epochs(len(covering), covering_rate=covering, approximated_accuracy=opposite, test_accuracy=accuracy)
    return Judged(name, "papi", task, rows, select=select)


def test_regret_by_hand() -> None:
    runs = [
        judged("a", [0.5, 0.9, 0.8], [0.1, 0.6, 0.7]),  # picks epoch 2: 0.1 below the best
        judged("b", [0.5, 0.9, 0.9], [0.1, 0.7, 0.6]),  # of equal ones the later: 0.1 below
        judged("c", [0.5, 0.6, 0.7], [0.1, 0.2, 0.3]),  # right
        judged("other task", [0.5, 0.1], [0.2, 0.8], task="elsewhere"),
    ]
    found = {(each.task, each.criterion): each for each in regrets(runs)}
    covering = found["toy", "covering_rate"]
    assert (covering.runs, covering.worst) == (3, pytest.approx(0.1))
    assert covering.mean == pytest.approx(0.2 / 3)
    assert covering.accuracy == pytest.approx((0.6 + 0.6 + 0.3) / 3)
    assert covering.over_epochs == pytest.approx((0.5 + 0.8660254 + 1) / 3)
    opposite = found["toy", "approximated_accuracy"]  # the first epoch of every run
    assert opposite.mean == pytest.approx((0.6 + 0.6 + 0.2) / 3)
    last = found["toy", "last"]
    assert last.mean == pytest.approx(0.1 / 3)
    assert last.over_epochs is None
    elsewhere = found["elsewhere", "covering_rate"]
    assert (elsewhere.mean, elsewhere.over_runs) == (pytest.approx(0.6), None)
    assert ("toy", "candidate_likelihood") not in found  # no row has it


def test_runs_without_a_test_accuracy_have_no_regret() -> None:
    blind = Judged("blind", "papi", "toy", epochs(2, covering_rate=[0.1, 0.2]))
    assert regrets([blind]) == []
    assert {each.runs for each in regrets([blind, judged("seen", [0.5], [0.5])])} == {1}


SHARES = st.floats(0, 1)


@given(st.lists(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=6), min_size=1, max_size=4))
def test_regrets_are_never_negative_and_at_worst_the_worst(courses: list[list[tuple[float, float]]]) -> None:
    runs = [judged(str(n), *(list(column) for column in zip(*each, strict=True))) for n, each in enumerate(courses)]
    for each in regrets(runs):
        assert 0 <= each.mean <= each.worst + 1e-12
        assert each.runs == len(runs)


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
    found = places(runs, "covering_rate")
    assert [place.rank for place in found] == [2, 1, 2, None]
    assert [place.value for place in found] == [0.8, 0.9, 0.8, None]
    assert [place.rank for place in places(runs, "candidate_likelihood")] == [None] * 4


@given(st.lists(SHARES, min_size=1, max_size=8))
def test_ranks_count_those_above(values: list[float]) -> None:
    found = places([judged(str(n), [value], [0.5]) for n, value in enumerate(values)], "covering_rate")
    assert [place.rank for place in found] == [1 + sum(other > value for other in values) for value in values]


def test_a_run_is_judged_by_the_epoch_it_keeps() -> None:
    course = ([0.5, 0.9, 0.8], [0.1, 0.6, 0.7])
    assert judged("a", *course, select="covering-rate").row.epoch == 1
    assert judged("a", *course, select="approximated-accuracy").row.epoch == 0
    assert judged("a", *course).row.epoch == 2


def test_a_rule_that_was_never_measured_leaves_the_last_epoch() -> None:
    run = Judged("a", "papi", "toy", epochs(3, test_accuracy=[0.1, 0.2, 0.3]), select="covering-rate")
    assert run.row.epoch == 2


@pytest.mark.parametrize(
    ("a", "b", "expected"), [([1, 2, 3], [2, 4, 9], 1), ([1, 2, 3], [3, 2, 1], -1), ([1, 1], [1, 2], None)]
)
def test_rank_correlation(a: list[float], b: list[float], expected: float | None) -> None:
    assert rank_correlation(a, b) == (expected if expected is None else pytest.approx(expected))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=9))
def test_rank_correlation_is_that_of_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    """Spearman's coefficient by its definition."""
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    found = rank_correlation(a.tolist(), b.tolist())
    if len(set(a.tolist())) < 2 or len(set(b.tolist())) < 2:
        assert found is None
        return
    ranks = [((x[:, None] > x).sum(1) + (x[:, None] >= x).sum(1)) / 2 for x in (a, b)]
    assert found == pytest.approx(np.corrcoef(ranks)[0, 1], abs=1e-9)


@pytest.mark.parametrize(
    ("candidates", "task"),
    [
        (CandidatesConfig(), "digits, own sets"),
        (CandidatesConfig(kind="uniform", flip_rate=0.25), "digits, uniform sets, q = 0.25"),
        (CandidatesConfig(kind="instance-dependent"), "digits, instance-dependent sets"),
        (CandidatesConfig(kind="noisy", flip_rate=0.1), "digits, noisy sets, q = 0.1"),
    ],
)
def test_what_a_run_shares_with_others(tmp_path: Path, candidates: CandidatesConfig, task: str) -> None:
    config = to_dict(RunConfig(data="digits", candidates=candidates, method="rc", epochs=5, data_holdout=0.1))
    folder = RunFolder(tmp_path)
    folder.write_record(Record(config=config, identity=config | {"data_hash": "h"}))
    folder.write_rows(list(epochs(2)))
    run = read_judged(tmp_path)
    assert (run.task, run.method, run.epochs, run.finished, len(run.rows)) == (task, "rc", 5, False, 2)
    assert run.parts == ("h", "0", "0.1")


def test_a_finished_run(make_run: Make) -> None:
    run = read_judged(make_run("mine").path)
    assert (run.name, run.method, run.finished, run.epochs) == ("mine", "papi", True, 3)


def test_folders_that_cannot_be_judged(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not contain a run"):
        read_judged(tmp_path)
    folder = RunFolder(tmp_path)
    config = to_dict(RunConfig())
    folder.write_record(Record(config=config, identity=config))
    with pytest.raises(UserError, match="no finished epoch yet"):
        read_judged(tmp_path)
    folder.metrics_file.write_text("{half a li\n")
    with pytest.raises(UserError, match="damaged"):
        read_judged(tmp_path)
    folder.write_record(Record(config=config | {"warp_factor": 9}, identity=config))
    with pytest.raises(UserError, match=r"another version wrote .*warp_factor"):
        read_judged(tmp_path)
