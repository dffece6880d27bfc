"""Gradient clipping: long gradients are scaled down to the given norm, and short ones are left alone."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from command import papi_exit_code
from papi.methods.cc import CC, CCConfig
from papi.networks import build
from papi.runs.folder import RunFolder
from papi.training.engine import train_step
from papi.types import Batch, Progress

START = Progress(epoch=0, epochs=1, step=0, steps=1, seed=0)


def moved(clip_norm: float, scaler: torch.amp.GradScaler | None = None, size: float = 10.0) -> Tensor:
    """How far a step of plain SGD at rate 1 moves the weights: minus the gradient it was given."""
    torch.manual_seed(0)
    sets = torch.rand(16, 3) < 0.4
    sets[:, 0] = True
    method = CC(build("mlp", (5,), 3, project=False), sets, CCConfig())
    before = parameters_to_vector(method.parameters()).detach().clone()
    batch = Batch(torch.arange(16), (size * torch.randn(16, 5),), sets)
    train_step(method, torch.optim.SGD(method.parameters(), lr=1.0), 1.0, batch, START, scaler, clip_norm)
    return parameters_to_vector(method.parameters()).detach() - before


def test_a_long_gradient_keeps_its_direction() -> None:
    free = moved(0.0)
    limit = 0.25 * float(free.norm())
    torch.testing.assert_close(moved(limit), 0.25 * free, atol=1e-5, rtol=1e-4)


def test_a_short_gradient_stays_as_it_is() -> None:
    free = moved(0.0)
    assert torch.equal(moved(2 * float(free.norm())), free)


def test_the_scale_of_half_precision_does_not_count() -> None:
    free = moved(0.0)
    limit = 0.25 * float(free.norm())
    scaled = moved(limit, torch.amp.GradScaler("cpu", init_scale=2.0**10))
    torch.testing.assert_close(scaled, moved(limit), atol=1e-6, rtol=1e-4)


def test_a_step_that_overflows_is_left_out() -> None:
    assert not moved(1.0, torch.amp.GradScaler("cpu", init_scale=2.0**127), size=1e5).any()


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_bad_norm_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert papi_exit_code("train", "--data", "digits", "--optim.clip-norm", value) == 2
    assert "--optim.clip-norm" in capsys.readouterr().err


def test_it_is_a_setting_of_a_run(tmp_path: Path) -> None:
    words = ("--limit", 40, "--epochs", 1, "--method", "cc", "--optim.clip-norm", 0.5, "--out", tmp_path / "run")
    assert papi_exit_code("train", "--data", "digits", *words) == 0
    assert RunFolder(tmp_path / "run").begun().run_config.optim.clip_norm == 0.5
