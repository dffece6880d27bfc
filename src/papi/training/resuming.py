"""Checks that a saved state fits the run that resumes from it. A correct checksum does not show that."""

import math
from collections.abc import Mapping
from inspect import signature

import torch
from torch import Tensor

from papi.config import Values
from papi.methods.base import Method
from papi.methods.packed import packed_state
from papi.runs.checkpoint import State
from papi.runs.schema import EpochRow
from papi.training.stopwatch import Stopwatch
from papi.training.tally import Tally

_ADAM = ("step", "exp_avg", "exp_avg_sq")
_TIMES = signature(Stopwatch).parameters


def fitted_state(
    state: State,
    method: Method,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler | None,
    *,
    epochs: int,
    steps: int,
) -> State:
    """Return the state if it fits a run of `epochs` epochs of `steps` steps; else raise ValueError with the reason.

    The optimizer settings are always those of the run, not those of the file.
    """
    last = state["epoch"] == epochs
    if state["epoch"] > epochs or state["step"] >= (1 if last else steps):
        raise ValueError(f"it resumes in step {state['step']} of epoch {state['epoch']}, which the run does not have")
    state["method"] = packed_state(state["method"], method)
    _require_same_tensors(state["method"], method.state_dict())
    weights = (value for name, value in state["method"].items() if name.startswith("network."))
    if not all(bool(value.isfinite().all()) for value in weights):
        raise ValueError("its weights are not finite")
    picked = state.get("picked")
    if picked is not None:
        picked["method"] = packed_state(picked["method"], method)
        _require_same_tensors(picked["method"], method.state_dict())
    if scaler is not None and _kinds(state.get("scaler", {})) != _kinds(scaler.state_dict()):
        raise ValueError("its gradient scaler does not match")
    _require_sums(state["tally"], begun=state["step"] > 0)
    if not state["seconds"].keys() <= set(_TIMES) or any(value < 0 for value in state["seconds"].values()):
        raise ValueError("its times are not valid")
    groups = optimizer.state_dict()["param_groups"]
    _require_optimizer_state(state["optimizer"].get("state"), optimizer)
    state["optimizer"] = {"state": state["optimizer"]["state"], "param_groups": groups}
    return state


def _require_same_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    if found.keys() != wanted.keys():
        name = min(found.keys() ^ wanted.keys())
        raise ValueError(f"{name} is {'missing' if name in wanted else 'not part of the run'}")
    for name, value in wanted.items():
        if found[name].shape != value.shape or found[name].is_floating_point() != value.is_floating_point():
            raise ValueError(f"{name} has the shape {tuple(found[name].shape)}, but the run has {tuple(value.shape)}")


def _require_optimizer_state(found: object, optimizer: torch.optim.Optimizer) -> None:
    """Stop if the optimizer cannot resume: its tensors must have the shapes of the parameters."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    names = _ADAM if isinstance(optimizer, torch.optim.Adam) else ()
    if not isinstance(found, dict):
        raise ValueError("it has no optimizer state")
    for place, values in found.items():
        if place not in range(len(parameters)) or not isinstance(values, dict) or not values.keys() >= set(names):
            raise ValueError("its optimizer state is for another optimizer")
        for name, value in values.items():
            wanted = () if name == "step" else parameters[place].shape
            if value is not None and (not isinstance(value, Tensor) or value.shape != wanted):
                raise ValueError(f"its optimizer state has a wrong {name}")
            if value is None and name in names:
                raise ValueError(f"its optimizer state has no {name}")
    # Every parameter takes part in every step, so the optimizer has state for all of them or for none.
    remembered = [
        {name for name, value in found.get(k, {}).items() if value is not None} for k in range(len(parameters))
    ]
    if any(each != remembered[0] for each in remembered):
        raise ValueError("its optimizer state covers only some parameters")


def _require_sums(sums: dict[str, Tensor], *, begun: bool) -> None:
    """Stop if the sums cannot be turned into the row of an epoch."""
    if any(value.ndim for value in sums.values()) or bool(sums) != begun:
        raise ValueError("its sums of the epoch are not valid")
    if not begun:
        return
    try:
        row = Tally(None, dict(sums)).means()
        EpochRow.from_json(row | {"epoch": 0, "seconds": 0.0})
    except (KeyError, ZeroDivisionError) as error:
        raise ValueError("its sums of the epoch are incomplete") from error


def _kinds(values: Values) -> dict[str, bool]:
    """Which values are finite numbers."""
    return {name: isinstance(value, float | int) and math.isfinite(value) for name, value in values.items()}
