import json
from pathlib import Path
from typing import Any

import pytest

from papi.config import (
    CandidatesConfig,
    CheckpointConfig,
    OptimConfig,
    RunConfig,
    from_dict,
    to_dict,
)
from papi.errors import UserError
from papi.runs.identity import differences


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: CandidatesConfig(flip_rate=1.0), "flip-rate"),
        (lambda: CandidatesConfig(flip_rate=-0.1), "flip-rate"),
        (lambda: CandidatesConfig(flip_rate=float("nan")), "flip-rate"),
        (lambda: CandidatesConfig(seed=-1), "--candidates.seed"),
        (lambda: OptimConfig(lr=-1), "--optim.lr"),
        (lambda: OptimConfig(momentum=1.0), "--optim.momentum"),
        (lambda: RunConfig(epochs=0), "--epochs must be 1 or more; got 0"),
        (lambda: RunConfig(batch_size=1), "--batch-size must be 2 or more; got 1"),
        (lambda: RunConfig(limit=1), "--limit"),
        (lambda: RunConfig(threads=0), "--threads"),
        (lambda: RunConfig(seed=2**32), "--seed"),
        (lambda: RunConfig(data_holdout=1.0), "--data.holdout must be a number in"),
        (lambda: RunConfig(select="covering-rate", data_holdout=0.0), "--select covering-rate needs a validation set"),
        (lambda: RunConfig(option=("temperature",)), "KEY=VALUE"),
        (lambda: CheckpointConfig(every="often"), "--checkpoint.every"),
        (lambda: CheckpointConfig(every="0s"), "--checkpoint.every"),
    ],
)
def test_bad_values_are_named(build: Any, says: str) -> None:
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        build()


def test_json_and_back() -> None:
    config = RunConfig(
        data_dir=Path("there"), option=("a=1", "b=2"), candidates=CandidatesConfig(0.3, 7), optim=OptimConfig(lr=0.2)
    )
    assert from_dict(json.loads(json.dumps(to_dict(config)))) == config


def test_what_makes_two_runs_different() -> None:
    a = to_dict(RunConfig(threads=1, device="cpu", data_dir=Path("x"), preset="quick"))
    b = to_dict(RunConfig(threads=2, device="cuda", data_dir=Path("y"), preset="paper"))
    assert differences(a, b) == {}
    c = to_dict(RunConfig(seed=1, optim=OptimConfig(lr=0.5)))
    assert differences(a, c) == {"seed": (0, 1), "optim.lr": (None, 0.5)}


def test_checkpoint_interval() -> None:
    assert (CheckpointConfig("30s").seconds, CheckpointConfig("30s").steps) == (30, float("inf"))
    assert (CheckpointConfig("200").seconds, CheckpointConfig("200").steps) == (float("inf"), 200)
