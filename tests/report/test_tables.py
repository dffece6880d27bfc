"""Numbers and sentences of a run's page."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.config import RunConfig, Select, to_dict
from papi.report import read_run, tables
from papi.report.run import Run
from papi.runs.folder import RunFolder
from papi.runs.schema import ParentRecord, Record, Summary
from runs_in_memory import epochs, run_of

Make = Callable[..., RunFolder]
SUMMARY = Summary(method="papi", dataset="toy", seconds=30.0, epochs=2)


def record(**values: object) -> Record:
    return replace(Record(config={"data": "toy"}, identity={"seed": 0}), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (90_000, "25.0 h")],
)
def test_durations(seconds: float, said: str) -> None:
    assert tables.duration(seconds) == said


def test_percent() -> None:
    assert tables.percent(0.1234) == "12.3%"
    assert tables.percent(0.5, 0) == "50%"
    assert {tables.percent(value) for value in (None, float("nan"), float("inf"))} == {"unknown"}


@given(st.floats(0, 1))
def test_percent_is_right_to_a_digit(share: float) -> None:
    assert abs(float(tables.percent(share)[:-1]) - 100 * share) <= 0.05 + 1e-9


def test_the_summary_counts_before_the_last_epoch() -> None:
    run = Run(Path("run"), rows=epochs(2, test_accuracy=[0.1, 0.2], prototype_accuracy=[0.3, 0.4]))
    assert (tables.accuracy_of(run), tables.prototype_accuracy_of(run), tables.seconds_of(run)) == (0.2, 0.4, 2.0)
    run.summary = replace(SUMMARY, test_accuracy=0.9)
    assert (tables.accuracy_of(run), tables.prototype_accuracy_of(run), tables.seconds_of(run)) == (0.9, 0.4, 30.0)
    run.summary = replace(SUMMARY, test_accuracy=float("nan"))
    assert tables.accuracy_of(run) == 0.2
    assert tables.accuracy_of(Run(Path("run"))) is None


def test_resolved_labels_are_counted_among_ambiguous_images() -> None:
    run = Run(Path("run"), rows=epochs(1, disambiguation_accuracy=[0.5]))
    assert tables.resolved_share(run) == 0.5
    run.summary = replace(SUMMARY, ambiguous_images=10, ambiguous_resolved=0)
    assert tables.resolved_share(run) == 0
    run.summary = replace(SUMMARY, ambiguous_images=0, ambiguous_resolved=0)
    assert tables.resolved_share(run) == 0.5


def test_what_is_known_without_candidate_sets() -> None:
    run = Run(Path("run"))
    assert (tables.mean_candidates(run), tables.images(run), tables.sure_share(run)) == (None, None, None)
    run.record = record(candidates={"mean_candidates": 2.5})
    run.summary = replace(SUMMARY, training_images=80)
    assert (tables.mean_candidates(run), tables.images(run)) == (2.5, 80)
    run.candidates = np.array([[True, True], [True, False]])
    assert (tables.mean_candidates(run), tables.images(run)) == (1.5, 2)


def test_sure_labels() -> None:
    run = run_of([[0.95, 0.05], [0.6, 0.4], [1.0, 0.0], [0.89, 0.11]])
    assert tables.sure_share(run) == 0.5


def test_the_headline_has_what_can_be_known() -> None:
    assert tables.headline(Run(Path("run"))) == []
    run = run_of([[0.95, 0.05], [0.6, 0.4]], rows=epochs(2, test_accuracy=[0.1, 0.25]))
    run.summary = replace(SUMMARY, ambiguous_images=2, ambiguous_resolved=1)
    facts = {fact.label: fact.value for fact in tables.headline(run)}
    assert facts == {
        "Test accuracy": "25.0%",
        "Labels resolved": "50.0%",
        "Confident labels": "50.0%",
        "Candidate labels": "2.0",
        "Training time": "30 s",
    }


def test_the_meaning_has_the_same_numbers() -> None:
    run = run_of([[0.95, 0.05], [0.6, 0.4]], rows=epochs(1, test_accuracy=[0.25]))
    run.summary = replace(SUMMARY, ambiguous_images=2, ambiguous_resolved=1)
    said = tables.meaning(run)
    for part in ("papi", "2 images of toy", "2.0 candidate labels", "50.0%", "25.0%"):
        assert part in said
    run.summary = None
    run.rows = ()
    assert "confident in its label for 50.0%" in tables.meaning(run)
    assert tables.meaning(Run(Path("run")))


@pytest.mark.parametrize(
    ("labels", "test_labels", "silent"),
    [([0, 1], [0], True), (None, None, False), (None, [0], False), ([0, 1], None, False)],
)
def test_what_cannot_be_known(labels: list[int] | None, test_labels: list[int] | None, silent: bool) -> None:
    run = run_of([[0.95, 0.05], [0.4, 0.6]], labels=labels, test_labels=test_labels)
    said = tables.truth(run)
    assert (said == "") == silent
    assert ("training images are unknown" in said) == (labels is None and test_labels is not None)
    assert ("no test images" in said) == (labels is not None and test_labels is None)


def test_the_table_of_epochs() -> None:
    run = Run(Path("run"), rows=epochs(2, loss=[2.0, float("nan")], test_accuracy=[0.5, None]))
    assert tables.epochs(run) == (["epoch", "loss", "test accuracy"], [["1", "2.000", "50.0%"], ["2", "–", "–"]])
    assert tables.epochs(Run(Path("run"))) == (["epoch", "loss"], [])


@given(st.integers(1, 300))
def test_a_long_run_has_a_short_table_with_its_first_and_last_epoch(count: int) -> None:
    _, body = tables.epochs(Run(Path("run"), rows=epochs(count)))
    assert len(body) <= tables.EPOCH_ROWS + 1
    assert (body[0][0], body[-1][0]) == ("1", str(count))
    assert len({row[0] for row in body}) == len(body)


def test_every_rule_picks_its_epoch() -> None:
    rows = epochs(
        3,
        covering_rate=[0.9, 0.5, 0.6],
        approximated_accuracy=[0.1, 0.7, 0.7],
        candidate_likelihood=[-0.5, -0.25, -0.75],
        mean_confidence=[0.2, 0.3, 0.4],
        test_accuracy=[0.3, 0.8, 0.4],
    )
    found = tables.choices(Run(Path("run"), rows=rows))
    assert [(choice.epoch, choice.value, choice.accuracy) for choice in found] == [
        (3, "", "40.0%"),
        (1, "90.0%", "30.0%"),
        (3, "70.0%", "40.0%"),
        (2, "-0.250", "80.0%"),
        (3, "40.0%", "40.0%"),
        (2, "", "80.0%"),
    ]
    assert tables.has_held_out(Run(Path("run"), rows=rows))


@pytest.mark.parametrize(("select", "place"), [("last", 0), ("covering-rate", 1), ("approximated-accuracy", 2)])
def test_the_rule_that_picked_the_epoch_is_marked(select: Select, place: int) -> None:
    rows = epochs(2, covering_rate=[0.9, 0.5], approximated_accuracy=[0.1, 0.7])
    run = Run(Path("run"), rows=rows, config=RunConfig(select=select))
    marked = ["used on this page" in choice.rule for choice in tables.choices(run)]
    assert marked == [n == place for n in range(3)]


def test_nothing_to_choose_from() -> None:
    assert tables.choices(Run(Path("run"))) == []
    run = Run(Path("run"), rows=epochs(2, mean_confidence=[0.5, 0.6]))
    assert tables.choices(run) == []  # confidence alone only grows
    held = Run(Path("run"), rows=epochs(2, covering_rate=[0.5, 0.6]))
    assert [choice.accuracy for choice in tables.choices(held)] == ["–", "–"]
    assert not tables.has_held_out(run)


def test_settings_by_dotted_names() -> None:
    config = {"data": "toy", "option": ["a=1", "b=2"], "optim": {"lr": 0.1, "decay": None}, "groups": [], "x": True}
    run = Run(Path("run"), record=record(config=config))
    assert tables.settings(run) == [
        ("data", "toy"),
        ("option", "a=1 b=2"),
        ("optim.lr", "0.1"),
        ("optim.decay", "–"),
        ("groups", "–"),
        ("x", "True"),
    ]
    assert tables.settings(Run(Path("run"), record=record(config={}))) == [("seed", "0")]
    assert tables.settings(Run(Path("run"))) == []


def test_all_settings_of_a_config_are_listed() -> None:
    run = Run(Path("run"), record=record(config=to_dict(RunConfig())))
    names = {name for name, _ in tables.settings(run)}
    assert {"seed", "candidates.flip_rate", "optim.lr", "checkpoint.every"} <= names


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (("/usr/bin/papi", "train", "--data", "my photos"), "papi train --data 'my photos'"),
        (("C:\\venv\\Scripts\\papi.exe", "train"), "papi train"),
        (("/site-packages/papi/__main__.py", "train"), "papi train"),
        (("/home/me/mine.py", "train"), ""),
        (("/home/me/__main__.py", "train"), ""),
        ((), ""),
    ],
)
def test_the_command_that_began_a_run(typed: tuple[str, ...], shown: str) -> None:
    assert tables.command(Run(Path("run"), record=record(command=typed))) == shown
    assert tables.command(Run(Path("run"))) == ""


def test_the_command_for_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tables.fix_command(Run(Path("runs/my run"))) == "papi labels 'runs/my run' --fix decisions.csv"
    elsewhere = tmp_path.parent / "elsewhere"
    assert tables.fix_command(Run(elsewhere)) == f"papi labels {elsewhere.resolve()} --fix decisions.csv"


def test_where_a_run_comes_from() -> None:
    child = Run(Path("run"), record=record(parent=ParentRecord(folder="runs/first", model="0")))
    assert tables.parent(child) == "runs/first"
    assert tables.parent(Run(Path("run"), record=record())) == ""
    assert tables.parent(Run(Path("run"))) == ""
    computed = Run(Path("run"), record=record(versions={"torch": "2.9", "numpy": "2.1"}))
    assert tables.versions(computed) == [("torch", "2.9"), ("numpy", "2.1")]
    assert tables.versions(Run(Path("run"))) == []


def test_a_whole_folder(make_run: Make) -> None:
    run = read_run(make_run().path)
    assert [fact.value for fact in tables.headline(run)][:2] == ["80.0%", "90.0%"]
    assert tables.truth(run) == ""
    assert tables.command(run).startswith("papi train --data ")
