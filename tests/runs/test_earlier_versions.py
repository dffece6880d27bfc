"""Run folders that PaPi 0.1.0 wrote still open in every command: a finished one, and one that was stopped."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import papi
from command import papi_exit_code
from papi.runs.doctor import check_up
from papi.runs.folder import RunFolder

EARLIER = Path(__file__).with_name("earlier")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of both folders and of the table that one of them was trained on, as the current folder."""
    shutil.copytree(EARLIER, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_every_file_reads_as_a_typed_record(name: str) -> None:
    folder = RunFolder(EARLIER / name)
    record = folder.begun()
    assert record.run_config.method == record.identity["method"]
    assert len(record.classes) == folder.read_sets().candidates.shape[1]
    rows = folder.read_rows()
    assert [row.epoch for row in rows] == list(range({"finished": 2, "stopped": 3}[name]))
    assert all(row.disambiguation_accuracy is not None for row in rows)
    assert check_up(EARLIER / name).healthy


def test_what_a_finished_run_kept() -> None:
    folder = RunFolder(EARLIER / "finished")
    summary, rows, arrays = folder.read_summary(), folder.read_rows(), folder.read_arrays()
    assert summary is not None
    assert summary.test_accuracy == rows[-1].test_accuracy
    assert summary.covering_rate == rows[-1].covering_rate
    assert arrays.confidence.shape == (60, 10)
    assert arrays.held_out is not None
    assert len(arrays.held_out) == summary.held_out_images == 12
    assert {"loss_classification", "loss_alignment"} <= rows[-1].logs.keys()


@pytest.mark.parametrize(
    "words",
    [
        ("report", "finished"),
        ("report", "stopped"),
        ("report", "finished", "stopped", "--out", "both.html"),
        ("compare", "finished"),
        ("compare", "finished", "stopped"),
        ("labels", "finished"),
        ("evaluate", "finished"),
        ("doctor", "finished"),
        ("doctor", "stopped"),
        ("watch", "finished"),
        ("watch", "stopped"),
        ("export", "finished", "--format", "pt2"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("place")
def test_every_command_opens_it(words: tuple[str, ...]) -> None:
    assert papi_exit_code(*words) == 0


def test_it_predicts(place: Path) -> None:
    digits = np.zeros((3, 8, 8), np.uint8)
    np.save(place / "digits.npy", digits)
    assert papi_exit_code("predict", "finished", "digits.npy", "--out", "answers.csv") == 0
    assert len((place / "answers.csv").read_text().splitlines()) == 4
    assert papi.load("finished").predict_proba(digits).shape == (3, 10)


def began(place: Path, name: str) -> list[str]:
    """What was typed to begin the run."""
    return list(RunFolder(place / name).begun().command[1:])


def test_a_finished_run_is_known_to_be_complete(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = (place / "finished" / "model.safetensors").read_bytes()
    assert papi_exit_code(*began(place, "finished")) == 0
    assert "already complete" in capsys.readouterr().out
    assert (place / "finished" / "model.safetensors").read_bytes() == model


def test_a_stopped_run_goes_on_where_it_was(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = RunFolder(place / "stopped").read_rows()
    assert papi_exit_code(*began(place, "stopped")) == 0
    assert "continuing in epoch 4" in capsys.readouterr().out
    folder = RunFolder(place / "stopped")
    assert folder.read_rows()[:3] == before
    assert folder.read_summary() is not None
    assert check_up(folder.path).healthy


def test_decisions_train_it_on(place: Path) -> None:
    (place / "decisions.csv").write_text("index,label\n0,1\n1,2\n")
    assert papi_exit_code("labels", "finished", "--fix", "decisions.csv", "--epochs", "1") == 0
    child = RunFolder(place / "finished-fixed").begun()
    assert child.parent is not None
    assert Path(child.parent.folder).name == "finished"
