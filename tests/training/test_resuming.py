"""States with a right checksum that do not fit the run: each is passed over, and the run ends as if it had not been."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from papi import train as run
from papi.config import CheckpointConfig, OptimConfig, RunConfig
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.runs import checkpoint
from papi.runs.folder import RunFolder
from papi.runs.identity import identity_hash
from papi.setup.build import build_method
from papi.training.optim import build_optimizer
from papi.training.resuming import fitted_state
from papi.training.selection import hold_out
from toy_data import make_toy_dataset

CPU = torch.device("cpu")
SGD = RunConfig(
    data="toy", epochs=2, batch_size=32, device="cpu", threads=1, network="small", method="proden",
    checkpoint=CheckpointConfig("1"), select="covering-rate",
)  # fmt: skip
ADAM = replace(SGD, optim=OptimConfig(optimizer="adam", lr=1e-3))
CONFIGS = {"sgd": SGD, "adam": ADAM}
Forgery = Callable[[dict[str, Any]], object]


def toy() -> tuple[Dataset, np.ndarray]:
    data = make_toy_dataset()
    assert data.labels is not None
    return data, generators.uniform(data.labels, len(data.class_names), 0.3, seed=0)


def fit(config: RunConfig, folder: Path, steps: int | None = None) -> list[run.Event]:
    """Train to the end, or stop after so many steps."""
    data, mask = toy()
    asked = iter(range(10**6))
    stop = (lambda: False) if steps is None else (lambda: next(asked) >= steps - 1)
    return list(run.fit(data, mask, run.settings_for(config, data), RunFolder(folder), stop))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each optimizer a whole run and one that was stopped in its second epoch."""
    place = tmp_path_factory.mktemp("place")
    for name, config in CONFIGS.items():
        fit(config, place / f"{name}-whole")
        fit(config, place / f"{name}-stopped", steps=5)
    return place


def put(*path: object) -> Callable[[object], Forgery]:
    """`put("optimizer", "state", 0)(3)` forges a state that has 3 there."""

    def valued(value: object) -> Forgery:
        def forge(state: dict[str, Any]) -> None:
            part: Any = state
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value

        return forge

    return valued


def first(part: str) -> Callable[[Callable[[torch.Tensor], object]], Forgery]:
    """Change the first tensor of a part."""

    def changed(change: Callable[[torch.Tensor], object]) -> Forgery:
        def forge(state: dict[str, Any]) -> None:
            name = next(iter(state[part]))
            state[part][name] = change(state[part][name])

        return forge

    return changed


FORGERIES: dict[str, Forgery] = {
    "an epoch too far": put("epoch")(1_000),
    "a step too far": put("step")(1_000),
    "a step behind the last": lambda state: state.update(
        epoch=2, rows=[*state["rows"], state["rows"][0] | {"epoch": 1}]
    ),
    "weights of another shape": first("method")(lambda tensor: tensor[None]),
    "weights that are whole numbers": first("method")(lambda tensor: tensor.long()),
    "weights that are not finite": first("method")(lambda tensor: tensor * float("nan")),
    "no weights": put("method")({}),
    "a weight more": put("method", "more")(torch.ones(2)),
    "a picked model of another shape": lambda state: first("method")(lambda tensor: tensor[None])(state["picked"]),
    "no state of the optimizer": put("optimizer")({"param_groups": []}),
    "the optimizer remembers a list": put("optimizer", "state")([1]),
    "the optimizer knows more parameters": put("optimizer", "state", 10**6)({}),
    "the optimizer names its parameters": put("optimizer", "state", "first")({}),
    "the optimizer remembers text": put("optimizer", "state", 0)("text"),
    "the optimizer remembers another shape": lambda state: state["optimizer"]["state"][0].update(
        {name: torch.ones(3, 3) for name in state["optimizer"]["state"][0]}
    ),
    "the optimizer remembers texts": lambda state: state["optimizer"]["state"][0].update(
        dict.fromkeys(state["optimizer"]["state"][0], "text")
    ),
    "the optimizer forgets a parameter": lambda state: state["optimizer"]["state"].pop(3),
    "the optimizer forgets what it knows of a parameter": put("optimizer", "state", 3)({}),
    "sums of nothing": put("tally")({}),
    "sums without samples": lambda state: state["tally"].pop("samples"),
    "sums of no samples": put("tally", "samples")(torch.tensor(0.0)),
    "sums that are vectors": put("tally", "loss")(torch.ones(2)),
    "squares without what is squared": put("tally", "more_squared")(torch.tensor(1.0)),
    "times with other names": put("seconds", "more")(1.0),
    "times before the beginning": put("seconds", "total")(-1.0),
}
OF_ADAM: dict[str, Forgery] = {
    f"adam does not remember {name}": lambda state, name=name: state["optimizer"]["state"][0].pop(name)
    for name in ("step", "exp_avg", "exp_avg_sq")
} | {"adam remembers nothing as its average": put("optimizer", "state", 0, "exp_avg")(None)}


def cases() -> list[object]:
    every = [pytest.param("sgd", forge, id=name) for name, forge in FORGERIES.items()]
    return [*every, *(pytest.param("adam", forge, id=name) for name, forge in (FORGERIES | OF_ADAM).items())]


def read(folder: Path) -> tuple[checkpoint.State, str]:
    """The last state of a run that was stopped, and what it is tied to."""
    identity = identity_hash(RunFolder(folder).begun().identity)
    return checkpoint.load(RunFolder(folder).checkpoint_file, identity, CPU), identity


@pytest.mark.parametrize(("name", "forge"), cases())
def test_it_does_not_fit(name: str, forge: Forgery, place: Path) -> None:
    state, _ = read(place / f"{name}-stopped")
    assert state["step"], "it was stopped within an epoch"
    data, mask = toy()
    settings = run.settings_for(CONFIGS[name], data)
    training, sets, _ = hold_out(data, mask, settings.data_holdout, settings.seed, CPU)
    method = build_method(settings, training, sets, CPU)
    optimizer = build_optimizer(method, settings.optim)
    assert fitted_state(state, method, optimizer, None, epochs=2, steps=3) is state
    forge(state)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"."):
        fitted_state(state, method, optimizer, None, epochs=2, steps=3)


@pytest.mark.parametrize("what", ["weights of another shape", "the optimizer remembers texts", "sums without samples"])
def test_it_is_passed_over(what: str, place: Path, tmp_path: Path) -> None:
    """The run goes on from the checkpoint before, and ends bit-equal."""
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(place / "sgd-stopped", folder.path)
    state, identity = read(folder.path)
    FORGERIES[what](state)  # type: ignore[arg-type]
    checkpoint.save(folder.checkpoint_file, state, identity)  # the one before is now the previous one
    started, *_, finished = fit(SGD, folder.path)
    assert isinstance(started, run.Started)
    assert any("not a checkpoint of this run" in problem for problem in started.problems), started.problems
    assert isinstance(finished, run.Finished)
    assert folder.model_file.read_bytes() == (place / "sgd-whole" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", CONFIGS)
def test_settings_of_the_optimizer_are_those_of_the_run(name: str, place: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(place / f"{name}-stopped", folder.path)
    state, identity = read(folder.path)
    for group in state["optimizer"]["param_groups"]:
        group.update(weight_decay="much", momentum=0.1, betas=None, params=[])
    checkpoint.save(folder.checkpoint_file, state, identity)
    started, *_ = fit(CONFIGS[name], folder.path)
    assert isinstance(started, run.Started)
    assert not started.problems
    assert folder.model_file.read_bytes() == (place / f"{name}-whole" / "model.safetensors").read_bytes()
