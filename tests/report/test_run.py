"""A run that is known in part still has a name, a method and all that follows from what is known."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from papi.config import RunConfig, to_dict
from papi.data.packed_rows import PackedRows
from papi.report.fitting import Kept
from papi.report.run import Run
from papi.runs.schema import Record, Summary
from runs_in_memory import epochs, run_of

SUMMARY = Summary(method="rc", dataset="photos", seconds=1.0, epochs=7, select="covering-rate")


def recorded(config: RunConfig) -> Run:
    return Run(Path("run"), record=Record(config=to_dict(config), identity=to_dict(config)), config=config)


def test_nothing_is_known() -> None:
    run = Run(Path("somewhere/mine"))
    assert (run.name, run.method, run.data, run.data_name) == ("mine", "unknown method", "", "unknown data")
    assert (run.epochs, run.select, run.labels, run.test_labels) == (None, "last", None, None)
    assert run.resolved is None


def test_the_settings_come_before_the_summary() -> None:
    run = recorded(RunConfig(data="a/b.npz", method="lws", epochs=4))
    run.summary = SUMMARY
    assert (run.method, run.data, run.epochs, run.select) == ("lws", "a/b.npz", 4, "last")
    assert run.data_name == "photos"  # the name without the folder


def test_the_summary_alone() -> None:
    run = Run(Path("run"), summary=SUMMARY)
    assert (run.method, run.data_name, run.epochs, run.select) == ("rc", "photos", 7, "covering-rate")


def test_settings_of_another_version_have_names_too() -> None:
    values = {"data": "digits", "method": "later", "invented": 3}
    run = Run(Path("run"), record=Record(config=values, identity=values))
    assert (run.method, run.data, run.epochs) == ("later", "digits", None)


@pytest.mark.parametrize("wrong", [7, None, ["papi"], {}])
def test_a_name_that_is_no_text(wrong: object) -> None:
    values = {"method": wrong, "data": wrong}
    run = Run(Path("run"), record=Record(config=values, identity=values))
    assert (run.method, run.data_name) == ("unknown method", "unknown data")


@pytest.mark.parametrize(
    ("data", "name"),
    [("digits", "digits"), ("a/b/photos", "photos"), ("a/photos/", "photos"), ("C:\\my\\photos.npz", "photos.npz")],
)
def test_the_name_of_the_data(data: str, name: str) -> None:
    assert recorded(RunConfig(data=data)).data_name == name


def test_identity_follows_the_settings_not_the_place(tmp_path: Path) -> None:
    here, there = recorded(RunConfig(seed=1)), recorded(RunConfig(seed=1))
    there.path = tmp_path / "moved"
    assert here.identity == there.identity
    assert here.identity != recorded(RunConfig(seed=2)).identity
    assert Run(tmp_path / "a").identity != Run(tmp_path / "b").identity
    assert Run(tmp_path / "a").identity == Run(tmp_path / "b" / ".." / "a").identity


def test_the_last_epoch_that_has_a_value() -> None:
    run = Run(Path("run"), rows=epochs(3, test_accuracy=[0.1, 0.2, None]))
    assert run.last(lambda row: row.test_accuracy) == 0.2
    assert run.last(lambda row: row.covering_rate) is None


def test_classes_without_a_name_are_numbered() -> None:
    run = Run(Path("run"), class_names=("ant", "bee"))
    assert [run.class_name(k) for k in (-1, 0, 1, 2)] == ["class -1", "ant", "bee", "class 2"]


def test_a_second_opinion_changes_what_to_look_at_first() -> None:
    run = run_of([[0.7, 0.3], [0.6, 0.4]])
    assert run.resolved is not None
    assert run.resolved.rank.tolist() == [2, 1]
    doubted = run_of([[0.7, 0.3], [0.6, 0.4]])
    doubted.kept = Kept(doubted.kept.confidence, np.array([0.1, 0.9], np.float32))
    assert doubted.resolved is not None
    assert doubted.resolved.rank.tolist() == [1, 2]


@given(
    arrays_of.arrays(np.float32, (5, 3), elements=st.floats(width=32)),
    arrays_of.arrays(np.bool_, (5, 3)).filter(lambda sets: bool(sets.any(1).all())),
)
def test_labels_are_candidates_whatever_the_confidence(confidence: np.ndarray, candidates: np.ndarray) -> None:
    for kept in (confidence, PackedRows.of(confidence, candidates)):
        run = Run(Path("run"), candidates=candidates, kept=Kept(kept))
        assert run.resolved is not None
        assert candidates[np.arange(5), run.resolved.label].all()
        assert ((run.resolved.confidence >= 0) & (run.resolved.confidence <= 1)).all()
        assert sorted(run.resolved.rank) == [1, 2, 3, 4, 5]
