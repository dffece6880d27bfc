"""Files of weights: what they may hold, and which encoder they fit."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from papi.errors import UserError
from papi.networks.weights import checksum, put_weights, read_weights_file


def encoder() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten())


def written(file: Path, weights: object) -> Path:
    if file.suffix == ".safetensors":
        save_file(weights, file)
    else:
        torch.save(weights, file)
    return file


@pytest.mark.parametrize("name", ["weights.safetensors", "weights.pth"])
def test_weights_go_from_one_encoder_to_another(name: str, tmp_path: Path) -> None:
    one, other = encoder(), encoder()
    file = written(tmp_path / name, one.state_dict())
    assert put_weights(other, read_weights_file(file), name, "test") == ()
    assert checksum(other) == checksum(one) != checksum(encoder())


@pytest.mark.parametrize("wrap", [lambda w: {"state_dict": w, "epoch": 3}, lambda w: {f"module.{k}": w[k] for k in w}])
def test_what_training_programs_wrap_around_weights(wrap: Any, tmp_path: Path) -> None:
    one, other = encoder(), encoder()
    file = written(tmp_path / "weights.pt", wrap(one.state_dict()))
    put_weights(other, read_weights_file(file), "file", "test")
    assert checksum(other) == checksum(one)


def test_a_head_is_left_out_and_said() -> None:
    one, other = encoder(), encoder()
    head = {"fc.weight": torch.zeros(1000, 4), "fc.bias": torch.zeros(1000)}
    (note,) = put_weights(other, one.state_dict() | head, "file.pth", "test")
    assert "fc.weight" in note
    assert checksum(other) == checksum(one)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda weights: weights.pop("0.weight"), "0.weight"),
        (lambda weights: weights.update({"strange.weight": torch.zeros(3)}), "strange.weight"),
        (lambda weights: weights.update({"0.bias": torch.zeros(5)}), "0.bias"),
    ],
)
def test_weights_of_another_architecture_are_listed(change: Any, named: str) -> None:
    one = encoder()
    before, weights = checksum(one), dict(encoder().state_dict())
    change(weights)
    with pytest.raises(UserError, match=named):
        put_weights(one, weights, "file", "test")
    assert checksum(one) == before


class Code:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    file = written(tmp_path / "weights.pth", {"0.weight": torch.zeros(3), "more": Code(tmp_path / "trace")})
    with pytest.raises(UserError, match="code"):
        read_weights_file(file)
    assert not (tmp_path / "trace").exists()


def whole(weights: dict[str, Tensor], suffix: str) -> bytes:
    stream = io.BytesIO()
    if suffix == ".pth":
        torch.save(weights, stream)
        return stream.getvalue()
    from safetensors.torch import save

    return save(weights)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("kept", [0, 1, 7, 100, -1])
def test_files_that_end_early(suffix: str, kept: int, tmp_path: Path) -> None:
    file = tmp_path / f"weights{suffix}"
    file.write_bytes(whole(dict(encoder().state_dict()), suffix)[:kept])
    with pytest.raises(UserError, match="cannot be read"):
        read_weights_file(file)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_that_are_no_numbers(suffix: str, tmp_path: Path) -> None:
    file = written(tmp_path / f"weights{suffix}", {"0.weight": torch.tensor([1.0, float("nan")])})
    with pytest.raises(UserError, match=r"0\.weight"):
        read_weights_file(file)


@pytest.mark.parametrize("content", [[1, 2], {}, {"a": "text"}, {1: torch.zeros(2)}, torch.zeros(3)])
def test_something_else_in_a_file(content: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_weights_file(written(tmp_path / "weights.pth", content))


def test_pipes_and_folders(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pth")
    for file in (tmp_path / "pipe.pth", tmp_path, tmp_path / "missing.safetensors"):
        with pytest.raises(UserError, match="cannot be read"):
            read_weights_file(file)


def test_a_checksum_is_of_names_and_values() -> None:
    one = encoder()
    two = nn.Sequential(*one.children())
    assert checksum(two) == checksum(one)
    assert checksum(nn.Sequential(nn.Identity(), *one.children())) != checksum(one)
    with torch.no_grad():
        one[0].weight[0, 0, 0, 0] += 1e-3
    assert checksum(nn.Sequential(*one.children())) == checksum(two)  # they share their weights
