"""Devices by name, what half precision means on them, and where training is refused."""

import sys

import pytest
import torch

from papi.config import RunConfig
from papi.errors import UserError
from papi.train import train
from papi.training.devices import find_device, half_precision, peak_memory, require_compiler, require_system

CPU = torch.device("cpu")


def test_a_device_by_name() -> None:
    assert find_device("cpu") == CPU
    assert find_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("meta", "not supported"),
        ("mps", "mps is not"),
        ("gpu", "not available"),
        ("cuda:99", "not available"),
        ("", "not available"),
    ],
)
def test_other_devices_are_refused_in_one_sentence(name: str, says: str) -> None:
    with pytest.raises(UserError, match=f"--device {name}.*"):
        find_device(name)
    with pytest.raises(UserError, match=says):
        find_device(name)


def test_precision() -> None:
    assert half_precision("fp32", CPU) == (None, None)
    assert half_precision("bf16", CPU) == (torch.bfloat16, None)
    with pytest.raises(UserError, match="needs a GPU"):
        half_precision("fp16", CPU)


def test_a_compiler_is_asked_for_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="no-such-compiler"):
        require_compiler(CPU)
    monkeypatch.setenv("CXX", sys.executable)  # anything that is there
    require_compiler(CPU)


def test_memory_is_that_of_the_process() -> None:
    before = peak_memory(CPU)
    held = torch.ones(50_000_000)
    assert peak_memory(CPU) >= max(before, held.nbytes)


def test_windows_is_refused_in_one_place(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    require_system()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UserError, match=r"Windows.*papi\.load"):
        list(train(RunConfig(), tmp_path / "run"))
    assert not (tmp_path / "run").exists()
