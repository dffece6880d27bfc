"""The records of a run on disk: there and back, what earlier versions wrote, and what does not fit."""

import json
import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papi.config import RunConfig, to_dict
from papi.data import packed_rows
from papi.data.packed_rows import PackedRows
from papi.runs.schema import Arrays, EpochRow, ParentRecord, Record, Rows, Sets, Summary
from papi.training.metrics import CRITERIA

numbers = st.floats(allow_nan=False, allow_infinity=False)
measured = [field.name for field in fields(EpochRow) if field.name not in ("epoch", "loss", "seconds", "logs")]
rows = st.builds(
    EpochRow,
    epoch=st.integers(0, 10**6),
    loss=numbers,
    seconds=numbers,
    logs=st.dictionaries(st.from_regex(r"loss_[a-z]{1,8}", fullmatch=True), numbers, max_size=3),
    **{name: st.none() | numbers for name in measured},
)


@given(rows)
def test_a_row_survives_the_file(row: EpochRow) -> None:
    assert EpochRow.from_json(json.loads(json.dumps(row.to_json()))) == row


@given(st.lists(rows, max_size=4), st.text(max_size=20))
def test_a_file_is_read_as_far_as_it_goes(written: list[EpochRow], rest: str) -> None:
    """Whatever stands in the last line: those before it are there, and nothing is raised."""
    text = "".join(json.dumps(row.to_json()) + "\n" for row in written)
    found = Rows.from_text(text + rest.replace("\n", ""))
    assert list(found.rows) == written
    assert found.problem is None
    assert found.half == bool(rest.replace("\n", ""))


def test_what_is_not_measured_is_not_written() -> None:
    row = EpochRow(epoch=0, loss=1.0, seconds=2.0, logs={"loss_alignment": 0.5})
    assert row.to_json() == {"epoch": 0, "loss": 1.0, "seconds": 2.0, "loss_alignment": 0.5}


def test_a_value_that_is_not_a_number_is_kept_as_such() -> None:
    row = EpochRow(epoch=0, loss=1.0, seconds=2.0, intra_similarity=math.nan)
    back = EpochRow.from_json(json.loads(json.dumps(row.to_json())))
    assert back.intra_similarity is not None
    assert math.isnan(back.intra_similarity)


def test_criteria_have_their_place() -> None:
    assert set(CRITERIA) <= {field.name for field in fields(EpochRow)}
    assert set(CRITERIA) <= {field.name for field in fields(Summary)}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "epoch"),
        ({"epoch": 0, "seconds": 1.0}, "loss"),
        ({"epoch": 0.5, "loss": 1, "seconds": 1}, "epoch is 0.5"),
        ({"epoch": True, "loss": 1, "seconds": 1}, "epoch is True"),
        ({"epoch": 0, "loss": "low", "seconds": 1}, "loss is 'low'"),
        ({"epoch": 0, "loss": None, "seconds": 1}, "loss is None"),
        ({"epoch": 0, "loss": 1, "seconds": 1, "test_accuracy": [1]}, "test_accuracy"),
        ([], "JSON object"),
        (None, "JSON object"),
    ],
)
def test_rows_that_do_not_fit(values: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        EpochRow.from_json(values)


def test_a_summary_survives_the_file() -> None:
    summary = Summary(method="papi", dataset="toy", seconds=1.5, epochs=3, select="covering-rate", peak_memory=10**9)
    assert Summary.from_json(json.loads(json.dumps(summary.to_json()))) == summary


def test_a_summary_of_another_version() -> None:
    """Names that came later are passed over, names that were not there yet have their defaults."""
    old = Summary.from_json({"method": "cc", "dataset": "toy", "seconds": 1, "epochs": 3, "later": {"a": 1}})
    assert (old.select, old.temperature, old.test_accuracy) == ("last", 1.0, None)


@pytest.mark.parametrize(
    "change", [{"epochs": "three"}, {"seconds": None}, {"select": "best"}, {"test_accuracy": "high"}, {"method": 1}]
)
def test_summaries_that_do_not_fit(change: dict[str, object]) -> None:
    values = Summary(method="papi", dataset="toy", seconds=1.5, epochs=3).to_json() | change
    with pytest.raises(ValueError, match=next(iter(change))):
        Summary.from_json(values)


def test_a_record_survives_the_file() -> None:
    record = Record(
        config=to_dict(RunConfig(seed=3)),
        identity={"seed": 3},
        classes=("cat", "dog"),
        parent=ParentRecord(folder="runs/a", model="abc"),
        candidates={"mean_candidates": 2.5},
        threads=2,
        versions={"torch": "2.0"},
        command=("papi", "train"),
    )
    back = Record.from_json(json.loads(json.dumps(record.to_json())))
    assert back == record
    assert back.run_config == RunConfig(seed=3)
    assert back.data_hash is None  # a child's says nothing about its data


def test_a_record_without_a_parent_does_not_mention_one() -> None:
    record = Record(config={}, identity={"data_hash": "abc"})
    assert "parent" not in record.to_json()
    assert record.data_hash == "abc"


@pytest.mark.parametrize("change", [{"identity": {}}, {"config": []}, {"versions": 3}, {"parent": {"folder": "x"}}])
def test_records_that_do_not_fit(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Record.from_json({"config": {}, "identity": {"seed": 0}} | change)


def test_settings_of_another_version_are_told() -> None:
    with pytest.raises(ValueError, match="version of PaPi"):
        _ = Record(config={"sead": 3}, identity={"seed": 3}).run_config


def test_arrays_there_and_back() -> None:
    arrays = Arrays(confidence=np.eye(3), prototypes=np.ones((3, 2)))
    assert arrays.to_arrays().keys() == {"confidence", "prototypes"}
    back = Arrays.from_arrays(arrays.to_arrays() | {"later": np.zeros(1)})
    assert back.to_arrays().keys() == arrays.to_arrays().keys()
    with pytest.raises(ValueError, match="no array confidence"):
        Arrays.from_arrays({"prototypes": np.eye(2)})


def test_sets_there_and_back() -> None:
    sets = Sets(candidates=np.eye(3, dtype=bool), rows=np.arange(3))
    assert Sets.from_arrays(sets.to_arrays()).to_arrays().keys() == {"candidates", "rows"}


def test_packed_arrays_and_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = np.eye(30, dtype=bool)
    confidence = sets.astype(np.float32)
    arrays = Arrays(confidence=PackedRows.of(confidence, sets))
    found = Arrays.from_arrays(arrays.to_arrays())
    found.require_fitting(sets)
    assert isinstance(found.confidence, PackedRows)
    np.testing.assert_array_equal(np.asarray(found.confidence), confidence)
    with pytest.raises(ValueError, match="other sets"):
        found.require_fitting(np.roll(sets, 1, axis=1))
    with pytest.raises(ValueError, match="is missing"):
        Arrays.from_arrays({name: array for name, array in arrays.to_arrays().items() if "starts" not in name})
    monkeypatch.setattr(packed_rows, "PACKED_ABOVE", 100)
    written = Sets(candidates=sets).to_arrays()
    assert "candidates" not in written
    np.testing.assert_array_equal(Sets.from_arrays(written).candidates, sets)
