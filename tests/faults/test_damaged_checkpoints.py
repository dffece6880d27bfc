"""A damaged checkpoint costs time alone, and nothing in it is ever run."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from preloaded import Preloaded
from tiny_runs import result, train, write_data


@pytest.fixture(scope="module")
def place(processes: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`twin`, a run that was left alone, and `stopped`, the same run killed before its last save was renamed."""
    place = tmp_path_factory.mktemp("runs")
    data = write_data(place / "data.npz")
    assert processes.run(*train(data, place / "twin"), output=place / "said").code == 0
    limit = {"file": "checkpoint.pt", "time": 4, "bytes": 1000}
    assert processes.run(*train(data, place / "stopped"), output=place / "said", limit=limit).code == 2
    assert (place / "stopped" / "checkpoint.previous.pt").exists()
    return place


class Evil:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.trace,))


def flipped(content: bytes, place: float) -> bytes:
    at = int(len(content) * place)
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES = {
    **{f"cut at {percent} %": lambda content, _, p=percent: content[: len(content) * p // 100]
       for percent in range(0, 100, 10)},
    "a bit of the header flipped": lambda content, _: flipped(content, 0.00002),
    "a bit in the middle flipped": lambda content, _: flipped(content, 0.5),
    "a pickle that runs code": lambda _, trace: pickle.dumps(Evil(trace)),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_the_one_before_is_used(processes: Preloaded, place: Path, tmp_path: Path, name: str) -> None:
    folder, trace = tmp_path / "run", tmp_path / "trace"
    shutil.copytree(place / "stopped", folder)
    file = folder / "checkpoint.pt"
    damaged = DAMAGES[name](file.read_bytes(), trace)
    file.write_bytes(damaged)
    examined = processes.run("doctor", folder, output=tmp_path / "said")
    assert examined.code == 1
    assert "error  checkpoint:  checkpoint.pt" in examined.said
    assert "continues it (after epoch 1)" in examined.said
    child = processes.run(*train(place / "data.npz", folder), output=tmp_path / "said")
    assert child.code == 0, child.said
    assert "the previous checkpoint is used" in child.said_in_one_line
    assert not trace.exists()
    aside = folder / "checkpoint.damaged.pt"
    assert aside.read_bytes() == damaged
    aside.unlink()
    assert result(folder) == result(place / "twin")


def test_both_damaged_begins_anew(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(place / "stopped", folder)
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (folder / name).write_bytes(b"")
    child = processes.run(*train(place / "data.npz", folder), output=tmp_path / "said")
    assert child.code == 0, child.said
    assert "training starts from the beginning" in child.said_in_one_line
    assert result(folder)[:2] == result(place / "twin")[:2]


def test_another_format_stops_and_keeps_the_files(processes: Preloaded, place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(place / "stopped", folder)
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        file = folder / name
        file.write_bytes(file.read_bytes().replace(b'"version": 1', b'"version": 2', 1))
    before = (folder / "checkpoint.pt").read_bytes()
    child = processes.run(*train(place / "data.npz", folder), output=tmp_path / "said")
    assert child.code == 2
    assert "continue the run with the version that began it" in child.said
    assert (folder / "checkpoint.pt").read_bytes() == before
