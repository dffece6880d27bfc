"""Measurements of epochs in TensorBoard's own files."""

import sys
from pathlib import Path

import pytest

from papi.cli.tensorboard import Scalars
from papi.errors import UserError
from papi.runs.schema import EpochRow


def test_scalars_can_be_read_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="no tensorboard here: pip install tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    scalars = Scalars(tmp_path)
    for epoch in range(3):
        scalars.add(EpochRow(epoch=epoch, loss=3.0 - epoch, seconds=1.0, test_accuracy=0.5, logs={"guess": 0.25}))
    # Continued after the second epoch: the third is written anew.
    Scalars(tmp_path, first_epoch=2).add(EpochRow(epoch=2, loss=0.5, seconds=1.0, test_accuracy=0.9))
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {"loss/loss", "accuracy/test_accuracy", "run/seconds", "run/guess"}
    assert [(each.step, each.value) for each in events.Scalars("loss/loss")] == [(1, 3.0), (2, 2.0), (3, 0.5)]


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as if its import failed
    with pytest.raises(UserError, match=r"papi-pll\[tensorboard\]"):
        Scalars(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="no tensorboard here: pip install tensorboard")
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "tensorboard").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="tensorboard is a link"):
        Scalars(tmp_path / "run")
    assert not list((tmp_path / "elsewhere").iterdir())
