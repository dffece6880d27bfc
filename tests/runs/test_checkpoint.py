"""Checkpoints: there and back, damaged by accident, and forged with a right checksum."""

import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from papi.errors import UserError
from papi.runs import checkpoint
from papi.runs.checkpoint import DamagedCheckpointError, State

CPU = torch.device("cpu")
ROWS = [{"epoch": epoch, "loss": 0.5, "seconds": 1.0} for epoch in range(3)]


def state(value: float = 1.0) -> State:
    return {
        "method": {"w": torch.full((50,), value)},
        "optimizer": {"state": {}, "param_groups": []},
        "epoch": 3,
        "step": 0,
        "rows": [dict(row) for row in ROWS],
        "tally": {},
        "seconds": {"total": 1.5},
        "picked": {"epoch": 1, "value": 0.5, "method": {"w": torch.zeros(50)}},
    }


def write(path: Path, found: object, **header: object) -> None:
    """A file with a right checksum, whatever it holds."""
    buffer = io.BytesIO()
    torch.save(found, buffer)
    content = buffer.getvalue()
    known = {"format": "papi checkpoint", "version": 1, "config": "hash", "length": len(content)}
    known["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_bytes(json.dumps(known | header).encode() + b"\n" + content)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "c.pt", state(), "hash")
    loaded = checkpoint.load(tmp_path / "c.pt", "hash", CPU)
    assert torch.equal(loaded["method"]["w"], torch.ones(50))
    assert (loaded["epoch"], loaded["rows"], loaded["seconds"]) == (3, ROWS, {"total": 1.5})
    assert loaded["picked"] is not None
    assert (loaded["picked"]["epoch"], loaded["picked"]["value"]) == (1, 0.5)
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
    write(tmp_path / "c.pt", {"evil": Evil()})
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)
    assert not (tmp_path / "hacked").exists()


def test_nothing_saved_yet(tmp_path: Path) -> None:
    assert checkpoint.load_newest(tmp_path / "c.pt", "hash", CPU) == (None, [])


@pytest.mark.parametrize("key", ["method", "optimizer", "epoch", "step", "rows", "tally", "seconds"])
@pytest.mark.parametrize("value", [..., None, "text", -1, 0.5, [1], {1: 2}, {"a": "b"}, torch.ones(2), 10**30], ids=str)
def test_a_forged_part_is_damage(key: str, value: object, tmp_path: Path) -> None:
    forged: dict[str, Any] = dict(state())
    forged |= {key: value}
    if value is ...:
        del forged[key]
    fits = key == "optimizer" and isinstance(value, dict)  # only the run knows what its optimizer needs
    fits |= key == "step" and isinstance(value, int) and value > 0
    write(tmp_path / "c.pt", forged)
    if fits:
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)
        return
    with pytest.raises(DamagedCheckpointError, match=r"^c\.pt "):
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "times too long for a number": lambda forged: forged | {"seconds": {"total": 10**400}},
    "nothing but a number": lambda s: 3,
    "a list": lambda s: [s],
    "too few rows": lambda s: s | {"rows": ROWS[:2]},
    "a row twice": lambda s: s | {"rows": [*ROWS[:2], ROWS[1]]},
    "rows of something else": lambda s: s | {"rows": [1, 2, 3]},
    "rows without epochs": lambda s: s | {"rows": [{"loss": 0.5}] * 3},
    "rows with tensors": lambda s: s | {"rows": [{**row, "loss": torch.ones(2)} for row in ROWS]},
    "more epochs than memory": lambda s: s | {"epoch": 2**62},
    "text among tensors": lambda s: s | {"method": {"w": "text"}},
    "a tensor with a number for a name": lambda s: s | {"method": {3: torch.ones(2)}},
    "seconds that are not finite": lambda s: s | {"seconds": {"total": float("nan")}},
    "a scaler of something else": lambda s: s | {"scaler": [1]},
    "a picked epoch of the future": lambda s: s | {"picked": s["picked"] | {"epoch": 3}},
    "a picked epoch before the first": lambda s: s | {"picked": s["picked"] | {"epoch": -1}},
    "a picked epoch without a model": lambda s: s | {"picked": {"epoch": 1, "value": 0.5}},
    "a picked value of text": lambda s: s | {"picked": s["picked"] | {"value": "best"}},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_state_is_passed_over(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.pt"
    checkpoint.save(path, state(1.0), "hash")
    checkpoint.save(path, state(2.0), "hash")
    write(path, FORGERIES[name](dict(state())))
    loaded, problems = checkpoint.load_newest(path, "hash", CPU)
    assert loaded is not None
    assert loaded["method"]["w"][0] == 1, "the previous checkpoint"
    assert len(problems) == 1
    assert "renamed to c.damaged.pt" in problems[0]
    assert (tmp_path / "c.damaged.pt").exists()


@pytest.mark.parametrize(
    "header",
    [
        {"format": "other"}, {"format": None}, {"version": "1"}, {"version": None}, {"length": "long"}, {"sha256": 1},
        {"config": ["hash"]}, {"length": 10**20},
    ],
    ids=str,
)  # fmt: skip
def test_a_forged_header_is_damage(header: dict[str, object], tmp_path: Path) -> None:
    write(tmp_path / "c.pt", dict(state()), **header)
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)


@pytest.mark.parametrize("first", [b"[" * 100_000, b"9" * 6_000, b"3", b"null", b"\xff", b'{"a": "' + b"x" * 10**6])
def test_a_header_that_is_none(first: bytes, tmp_path: Path) -> None:
    (tmp_path / "c.pt").write_bytes(first + b"\n")
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(tmp_path / "c.pt", "hash", CPU)


def test_another_version_is_told(tmp_path: Path) -> None:
    write(tmp_path / "c.pt", dict(state()), version=2)
    with pytest.raises(UserError, match="format version 2"):
        checkpoint.load_newest(tmp_path / "c.pt", "hash", CPU)


def test_a_state_that_the_run_cannot_use(tmp_path: Path) -> None:
    def fitted(found: State) -> State:
        if found["method"]["w"][0] == 2:
            raise ValueError("w is two")
        return found

    path = tmp_path / "c.pt"
    checkpoint.save(path, state(1.0), "hash")
    checkpoint.save(path, state(2.0), "hash")
    loaded, (problem,) = checkpoint.load_newest(path, "hash", CPU, fitted)
    assert loaded is not None
    assert loaded["method"]["w"][0] == 1
    assert "w is two" in problem


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.pt")
    loaded, (problem,) = checkpoint.load_newest(tmp_path / "c.pt", "hash", CPU)
    assert loaded is None
    assert "a pipe" in problem


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    checkpoint.save(tmp_path / "c.pt", state(), "hash")
    (tmp_path / "run" / "c.pt").symlink_to(tmp_path / "c.pt")
    with pytest.raises(DamagedCheckpointError, match="out of its folder"):
        checkpoint.load(tmp_path / "run" / "c.pt", "hash", CPU)
