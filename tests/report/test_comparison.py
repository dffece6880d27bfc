"""Several runs side by side."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papi.config import CandidateKind, CandidatesConfig, RunConfig, to_dict
from papi.report.comparison import (
    accuracy_by_flip_rate,
    colours_by_method,
    differences,
    distinct_names,
    flip_rate,
    same_sets,
    standings,
    task,
)
from papi.report.plots import COLOURS
from papi.report.reading import read_run
from papi.report.run import Run
from papi.runs.folder import RunFolder
from papi.runs.schema import Record, Summary
from run_folders import summary_of
from runs_in_memory import epochs, run_of

Make = Callable[..., RunFolder]


def finished(
    accuracy: float | None,
    *,
    rate: float | None = 0.5,
    kind: CandidateKind | None = "uniform",
    method: str = "papi",
    data: str = "toy",
    seconds: float = 60.0,
    limit: int | None = None,
    path: str = "run",
) -> Run:
    config = RunConfig(data=data, method=method, limit=limit, candidates=CandidatesConfig(kind=kind))
    return Run(
        Path(path),
        record=Record(config=to_dict(config), identity=to_dict(config)),
        config=config,
        finished=True,
        summary=Summary(method=method, dataset=data, seconds=seconds, epochs=1, test_accuracy=accuracy, flip_rate=rate),
    )


def test_the_best_of_a_task_are_marked() -> None:
    runs = [
        finished(0.8, seconds=100),
        finished(0.9, seconds=200),
        finished(0.9, seconds=300),
        finished(0.99, seconds=1, data="other"),  # alone on its task: there is nobody to be better than
    ]
    headings, rows = standings(runs)
    assert headings == ["Test accuracy", "Time"]
    assert [row.cells for row in rows] == [
        ["80.0%", "2 min"],
        ["90.0%", "3 min"],
        ["90.0%", "5 min"],
        ["99.0%", "1 s"],
    ]
    assert [row.best for row in rows] == [{1}, {0}, {0}, set()]


def test_what_no_run_has_is_no_column_and_what_one_lacks_is_a_dash() -> None:
    headings, rows = standings([finished(None), finished(0.5)])
    assert headings == ["Test accuracy", "Time"]
    assert rows[0].cells[0] == "–"
    assert rows[1].best == {1}  # equal times: both are best, and one accuracy is no contest
    assert standings([Run(Path("empty"))])[0] == []


def test_numbers_that_are_not_better_when_higher_are_not_marked() -> None:
    runs = [run_of([[0.9, 0.1]], rows=epochs(1)), run_of([[0.6, 0.4]], rows=epochs(3))]
    headings, rows = standings(runs)
    assert headings == ["Confident labels", "Candidate labels", "Epochs", "Time"]
    assert [row.best for row in rows] == [{3}, {3}]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (finished(0.5), "toy, flip rate 0.5"),
        (finished(0.5, data="photos/cats"), "cats, flip rate 0.5"),
        (finished(0.5, limit=2000), "toy, 2,000 images, flip rate 0.5"),
        (finished(0.5, kind="noisy", rate=0.1), "toy, noisy candidates, flip rate 0.1"),
        (finished(0.5, kind="instance-dependent"), "toy, instance-dependent candidates"),
        (finished(0.5, kind=None, rate=None), "toy"),
        (Run(Path("run")), "unknown data"),
    ],
)
def test_a_task_in_words(run: Run, words: str) -> None:
    assert task(run) == words


def test_the_flip_rate_of_an_unfinished_run() -> None:
    made, brought = (Run(Path("run"), config=finished(None, kind=kind).config) for kind in ("uniform", None))
    assert flip_rate(made) == 0.5
    assert flip_rate(brought) is None  # the sets came with the data: nobody knows how


def test_the_summary_knows_the_rate_where_the_settings_are_gone() -> None:
    run = finished(0.5, rate=0.3)
    run.config = None
    assert flip_rate(run) == 0.3


def test_equal_names_are_told_apart_by_the_folder_above(tmp_path: Path) -> None:
    runs = [Run(tmp_path / place) for place in ("a/run", "b/run", "c/other")]
    assert distinct_names(runs) == ["a/run", "b/run", "other"]


def test_every_run_has_a_colour_while_there_are_enough() -> None:
    few = [finished(0.5) for _ in range(COLOURS)]
    assert colours_by_method(few) == list(range(COLOURS))
    many = [finished(0.5, method=method) for method in ("papi", "rc", "papi", "cc") for _ in range(3)]
    assert colours_by_method(many) == [0] * 3 + [1] * 3 + [0] * 3 + [2] * 3


def test_repeated_runs_are_a_mean_with_a_spread() -> None:
    runs = [finished(0.9, rate=0.1), finished(0.7, rate=0.1), finished(0.6, rate=0.5)]
    (curve,) = accuracy_by_flip_rate(standings(runs)[1])
    assert (curve.label, curve.x) == ("papi", [0.1, 0.5])
    assert curve.y == pytest.approx([0.8, 0.6])
    assert curve.spread == pytest.approx([0.1, 0.0])


def test_methods_and_datasets_have_curves_of_their_own() -> None:
    runs = [finished(0.9, rate=rate, method=method) for method in ("papi", "rc") for rate in (0.1, 0.5)]
    assert [curve.label for curve in accuracy_by_flip_rate(standings(runs)[1])] == ["papi", "rc"]
    runs.append(finished(0.9, rate=0.1, data="other"))
    labels = [curve.label for curve in accuracy_by_flip_rate(standings(runs)[1])]
    assert labels == ["papi, toy, uniform", "rc, toy, uniform", "papi, other, uniform"]


def test_one_rate_is_no_curve() -> None:
    assert accuracy_by_flip_rate(standings([finished(0.9), finished(0.8)])[1]) == []


def test_sets_without_a_flip_rate_are_not_on_that_curve(make_run: Make) -> None:
    runs = [make_run(name) for name in "abc"]
    for run, rate, accuracy in zip(runs, (0.5, 0.1, 0.5), (0.8, 0.9, 0.4), strict=True):
        run.write_summary(replace(summary_of(run), flip_rate=rate, test_accuracy=accuracy))
    record = runs[2].begun()
    sets = record.config["candidates"] | {"kind": "instance-dependent"}
    runs[2].write_record(replace(record, config=record.config | {"candidates": sets}))
    (curve,) = accuracy_by_flip_rate(standings([read_run(run.path) for run in runs])[1])
    assert (curve.x, curve.y) == ([0.1, 0.5], [0.9, 0.8])


def test_runs_differ_where_their_labels_do() -> None:
    """The surest disagreement comes first: both are sure of it."""
    a = run_of([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3]], path="a")
    b = run_of([[0.1, 0.9], [0.7, 0.3], [0.45, 0.55], [0.4, 0.6]], path="b")
    (found,) = differences(standings([a, b])[1])
    assert found.rows.tolist() == [0, 3, 2]
    assert (found.images, found.share) == (4, 0.75)


def test_pairs_of_different_methods_come_first() -> None:
    near, far = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]], [[0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]
    runs = []
    for name, confidence in (("papi", near), ("papi", far), ("rc", [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]])):
        run = run_of(confidence)
        values = {"method": name}
        run.record = Record(config=values, identity=values)
        runs.append(run)
    found = differences(standings(runs)[1])
    assert [(each.a.run.method, each.b.run.method, len(each.rows)) for each in found] == [
        ("papi", "rc", 1),
        ("papi", "rc", 1),
        ("papi", "papi", 2),
    ]


def test_only_runs_on_the_same_sets_are_set_against_each_other() -> None:
    a, b = run_of([[0.9, 0.1]]), run_of([[0.1, 0.9]])
    assert same_sets(a, b)
    b.candidates = np.array([[True, False]])
    assert not same_sets(a, b)
    b.candidates = np.ones((2, 2), bool)
    assert not same_sets(a, b)
    assert not same_sets(a, Run(Path("run")))
    elsewhere = run_of([[0.1, 0.9]])
    elsewhere.record = Record(config={"data": "other"}, identity={"seed": 0})
    assert not same_sets(a, elsewhere)
    assert differences(standings([a, elsewhere])[1]) == []
