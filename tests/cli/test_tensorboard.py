from pathlib import Path

import pytest

from papi.cli.tensorboard import Scalars


def test_scalars_can_be_read_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="no tensorboard here: pip install tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    scalars = Scalars(tmp_path)
    for epoch in range(3):
        scalars.add({"epoch": epoch, "loss": 3.0 - epoch, "test_accuracy": 0.5, "note": "no number"})
    # Continued after the second epoch: the third is written anew.
    Scalars(tmp_path, first_epoch=2).add({"epoch": 2, "loss": 0.5, "test_accuracy": 0.9})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {"loss/loss", "accuracy/test_accuracy"}
    assert [(each.step, each.value) for each in events.Scalars("loss/loss")] == [(1, 3.0), (2, 2.0), (3, 0.5)]
