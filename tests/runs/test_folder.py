"""The files of a run folder: written whole, read back as they were, and named when they are damaged."""

import json
from pathlib import Path

import numpy as np
import pytest

from papi.errors import UserError
from papi.runs.folder import RunFolder
from papi.runs.schema import Arrays, EpochRow, Record, Sets, Summary

FIRST, SECOND = (EpochRow(epoch=epoch, loss=1.5 - epoch, seconds=2.0 + epoch) for epoch in (0, 1))
SUMMARY = Summary(method="papi", dataset="toy", seconds=2.5, epochs=3, test_accuracy=0.75)


def record(**identity: object) -> Record:
    return Record(config={"seed": 0}, identity=identity, classes=("cat", "dog"))


def test_rows(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_rows() == []
    folder.write_rows([FIRST])
    folder.append_row(SECOND)
    assert folder.read_rows() == [FIRST, SECOND]
    with folder.metrics_file.open("a") as file:
        file.write('{"epoch": 2, "lo')  # a kill in the middle of a line
    assert folder.read_rows() == [FIRST, SECOND]
    assert folder.look_at_rows().half


@pytest.mark.parametrize("line", ["no json", "[]", "{}", '{"epoch": "one", "loss": 1, "seconds": 1}', '{"epoch": 1}'])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    folder = RunFolder(tmp_path)
    folder.write_rows([FIRST])
    with folder.metrics_file.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged \(line 2: "):
        folder.read_rows()
    assert folder.look_at_rows().rows == (FIRST,)


def test_arrays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_arrays(Arrays(confidence=np.eye(3), held_out=np.arange(2)))
    found = folder.read_arrays()
    np.testing.assert_array_equal(found.confidence, np.eye(3))
    np.testing.assert_array_equal(found.held_out, np.arange(2))
    assert found.prototypes is None
    folder.arrays_file.write_bytes(b"PK half")
    with pytest.raises(UserError, match=r"arrays\.npz cannot be read"):
        folder.read_arrays()


def test_sets(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_sets(Sets(candidates=np.eye(2, dtype=bool), file_names=np.array(["a.png", "b.png"])))
    found = folder.read_sets()
    np.testing.assert_array_equal(found.candidates, np.eye(2, dtype=bool))
    assert found.file_names is not None
    assert found.file_names.tolist() == ["a.png", "b.png"]
    np.savez(folder.candidates_file, something=np.arange(3))
    with pytest.raises(UserError, match=r"candidates\.npz cannot be read \(it has no array candidates\)"):
        folder.read_sets()


def test_summary(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_summary() is None
    folder.write_summary(SUMMARY)
    assert folder.read_summary() == SUMMARY


@pytest.mark.parametrize("content", ['{"method": "papi"', "[]", "{}", "", '{"method": 3}'])
def test_a_damaged_summary_is_named(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.summary_file.write_text(content)
    with pytest.raises(UserError, match=r"summary\.json is damaged"):
        folder.read_summary()


@pytest.mark.parametrize("content", ['{"identity": {', "[]", "{}", "", '{"identity": []}', "[" * 10_000])
def test_a_damaged_record_is_named(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.config_file.write_text(content)
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        folder.read_record()


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).read_record() is None
    with pytest.raises(UserError, match="does not contain a run"):
        RunFolder(tmp_path).begun()


def test_another_run_is_refused_with_the_differences(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(record(seed=0, epochs=3, threads=1))
    folder.refuse_other_run({"seed": 0, "epochs": 3, "threads": 2})
    with pytest.raises(UserError, match="seed is 1 here and 0 there"):
        folder.refuse_other_run({"seed": 1, "epochs": 3})
    with pytest.raises(UserError, match="a longer run must start again"):
        folder.refuse_other_run({"seed": 0, "epochs": 9})


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_record(record(seed=0))
    folder.write_rows([FIRST])
    folder.write_summary(SUMMARY)
    assert {file.name for file in tmp_path.iterdir()} == {"config.json", "metrics.jsonl", "summary.json"}
    assert json.loads(folder.config_file.read_text())["classes"] == ["cat", "dog"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        RunFolder(tmp_path / "file" / "run").create()
