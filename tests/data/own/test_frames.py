"""Candidate sets from frames of every kind, for `papi.read_candidates` and the estimator."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import papi
from papi.data.own.frames import holds_labels, is_frame
from papi.errors import UserError

COLUMNS = {
    "file_name": ["a", "b", "c", "d"],
    "candidates": ["rose|tulip", "violet", None, "rose:0.9|violet:0.1"],
    "excluded": [None, None, "rose", None],
}
EXPECTED = [{"rose", "tulip"}, {"violet"}, {"tulip", "violet"}, {"rose", "violet"}]


def frame(kind: str, columns: dict[str, list[object]]) -> object:
    """The columns as a frame of one of the kinds."""
    module = pytest.importorskip({"arrow": "pyarrow", "pyarrow": "pyarrow"}.get(kind, kind))
    if kind == "arrow":
        return Capsule(module.table(columns))
    return module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)


class Capsule:
    """Speaks Arrow, and nothing else."""

    def __init__(self, table: object) -> None:
        self.table, self.columns = table, table.column_names  # type: ignore[attr-defined]

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self.table.__arrow_c_stream__(schema)  # type: ignore[attr-defined]


KINDS = ["pandas", "polars", "pyarrow", "arrow"]


def sets_of(found: papi.data.own.annotation_arrays.Annotations) -> list[set[str]]:  # type: ignore[name-defined]
    return [{found.class_names[k] for k in np.flatnonzero(row)} for row in found.candidates]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame(kind: str) -> None:
    found = papi.read_candidates(frame(kind, COLUMNS))
    assert sets_of(found) == EXPECTED
    assert found.file_names == ("a", "b", "c", "d")
    assert found.weights is not None
    assert found.weights[3].max() == pytest.approx(0.9)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_votes_and_columns_of_classes(kind: str) -> None:
    assert sets_of(papi.read_candidates(frame(kind, {"candidates": [["x", "y"], ["y"]]}))) == [{"x", "y"}, {"y"}]
    votes = {"task": ["a", "a", "b"], "worker": ["u", "v", "u"], "label": ["x", "y", "y"]}
    assert sets_of(papi.read_candidates(frame(kind, votes))) == [{"x", "y"}, {"y"}]
    matrix = {"x": [1, 0, 0], "y": [1, 1, 0]}
    assert sets_of(papi.read_candidates(frame(kind, matrix), empty="unlabelled")) == [{"x", "y"}, {"y"}, {"x", "y"}]


@pytest.mark.parametrize("kind", KINDS)
def test_problems_name_the_row(kind: str) -> None:
    with pytest.raises(UserError, match="the frame, row 2: the candidate set is empty"):
        papi.read_candidates(frame(kind, {"candidates": ["x|y", None]}))


def test_files_and_options(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("file_name,species\na,rose|tulip\nb,rose\n")
    assert sets_of(papi.read_candidates(tmp_path / "l.csv", column="species")) == [{"rose", "tulip"}, {"rose"}]
    for wrong, message in (
        (3, "not a supported table"),
        ({"candidates": ["a"]}, "not a supported table"),
        ([["a"]], "not a supported table"),
    ):
        with pytest.raises(UserError, match=message):
            papi.read_candidates(wrong)
    with pytest.raises(UserError, match=r"empty must be .* got 'x'"):
        papi.read_candidates(tmp_path / "l.csv", empty="x")


def test_what_is_a_frame_of_labels() -> None:
    pandas = pytest.importorskip("pandas")
    assert holds_labels(pandas.DataFrame({"candidates": ["a"]}))
    assert not holds_labels(pandas.DataFrame({"a": [1], "b": [0]}))
    assert not any(map(is_frame, (np.zeros((2, 2)), [["a"]], {"a": 1}, pandas.Series(["a"]), None)))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_estimator_takes_frames(kind: str) -> None:
    draws = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 12)
    points = np.eye(3)[truth] * 4 + draws.normal(size=(36, 3))
    names = np.array(["rose", "tulip", "violet"])
    x = frame(kind, {name: points[:, k].tolist() for k, name in enumerate("abc")})
    cells = [f"{names[k]}:0.7|{names[(k + 1) % 3]}:0.3" for k in truth]
    y = frame(kind, {"candidates": cells})
    clf = papi.PartialLabelClassifier(epochs=2, threads=1, device="cpu").fit(x, y)
    assert clf.classes_.tolist() == names.tolist()
    assert clf.confidence_.shape == (36, 3)
    assert 0 <= clf.score(x, y) <= 1
    same = papi.PartialLabelClassifier(epochs=2, threads=1, device="cpu").fit(x, papi.read_candidates(y))
    assert np.array_equal(same.confidence_, clf.confidence_)
    matrix = frame(kind, {name: [int(name in cell) for cell in cells] for name in names})
    plain = papi.PartialLabelClassifier(epochs=2, threads=1, device="cpu").fit(x, matrix)
    assert plain.classes_.tolist() == names.tolist()
    assert not np.array_equal(plain.confidence_, clf.confidence_)  # weights count


def test_nothing_is_imported_that_was_not_given() -> None:
    code = "import sys, papi; papi.read_candidates; print({'pandas', 'polars', 'pyarrow', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
