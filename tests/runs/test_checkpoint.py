import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from papi.runs import checkpoint
from papi.runs.checkpoint import DamagedCheckpointError

CPU = torch.device("cpu")


def state(value: float = 1.0) -> dict[str, Any]:
    return {"method": {"w": torch.full((50,), value)}, "epoch": 3, "rows": [{"loss": 0.5}], "seconds": {"total": 1.5}}


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "c.pt", state(), "hash")
    loaded = checkpoint.load(tmp_path / "c.pt", "hash", CPU)
    assert torch.equal(loaded["method"]["w"], torch.ones(50))
    assert (loaded["epoch"], loaded["rows"], loaded["seconds"]) == (3, [{"loss": 0.5}], {"total": 1.5})
    assert [file.name for file in tmp_path.iterdir()] == ["c.pt"]


def test_the_one_before_is_kept(tmp_path: Path) -> None:
    for value in (1.0, 2.0, 3.0):
        checkpoint.save(tmp_path / "c.pt", state(value), "hash")
    assert checkpoint.load(tmp_path / "c.pt", "hash", CPU)["method"]["w"][0] == 3
    assert checkpoint.load(checkpoint.previous(tmp_path / "c.pt"), "hash", CPU)["method"]["w"][0] == 2


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("hacked").touch, ())


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how.startswith("cut at"):
        path.write_bytes(content[: len(content) * int(how.split()[2]) // 100])
    elif how == "bit flipped":
        path.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    elif how == "pickle with code":
        path.write_bytes(pickle.dumps(Evil()))
    elif how == "not JSON":
        path.write_bytes(b"[]\n" + content)


@pytest.mark.parametrize(
    "how", [*(f"cut at {p}" for p in range(0, 100, 10)), "bit flipped", "pickle with code", "not JSON"]
)
def test_damage_is_noticed_and_the_previous_one_used(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "c.pt"
    checkpoint.save(path, state(1.0), "hash")
    checkpoint.save(path, state(2.0), "hash")
    damage(path, how)
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(path, "hash", CPU)
    loaded, problems = checkpoint.load_newest(path, "hash", CPU)
    assert loaded is not None
    assert loaded["method"]["w"][0] == 1
    assert len(problems) == 1
    assert not (tmp_path / "hacked").exists()


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "c.pt", state(), "mine")
    with pytest.raises(DamagedCheckpointError, match="other settings"):
        checkpoint.load(tmp_path / "c.pt", "yours", CPU)


def test_code_behind_a_valid_header_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint.save(tmp_path / "c.pt", {"evil": Evil()}, "hash")
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)
    assert not (tmp_path / "hacked").exists()


def test_nothing_saved_yet(tmp_path: Path) -> None:
    assert checkpoint.load_newest(tmp_path / "c.pt", "hash", CPU) == (None, [])
