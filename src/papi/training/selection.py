"""Selects the epoch to keep, using a validation set that has only candidate labels."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from papi.config import Select, StopWhen
from papi.data.dataset import Dataset
from papi.data.loader import on_device
from papi.errors import UserError
from papi.methods.base import Method
from papi.randomness import draws
from papi.runs.checkpoint import PickedEpoch
from papi.runs.schema import EpochRow


class HeldOut(NamedTuple):
    """The validation set of a run. Only its candidate labels are known here."""

    rows: np.ndarray  # (N,) bool: which samples are in the validation set
    samples: Tensor  # (M, C, H, W) uint8 or (M, d) float32, on the device
    candidates: np.ndarray  # (M, K) bool
    prior: np.ndarray | None = None  # (M, K) float32, if the data have a prior over candidates


def hold_out(
    dataset: Dataset, candidates: np.ndarray, share: float, seed: int, device: torch.device
) -> tuple[Dataset, np.ndarray, HeldOut | None]:
    """Split samples and candidate sets at random into training and validation set; no validation set if share is 0."""
    if share == 0:
        return dataset, candidates, None
    count = round(share * len(candidates))
    if not 0 < count <= len(candidates) - 2:
        raise UserError(
            f"{dataset.name} has {len(candidates)} training samples, not enough to hold out {share:g} of them: "
            "change --data.holdout, or leave it out."
        )
    rows = np.zeros(len(candidates), bool)
    rows[draws(seed, "held-out candidates").permutation(len(candidates))[:count]] = True
    samples = on_device(dataset.samples[rows], device)
    prior = None if dataset.prior is None else dataset.prior[rows]
    return dataset.taking(np.flatnonzero(~rows)), candidates[~rows], HeldOut(rows, samples, candidates[rows], prior)


def has_stopped_rising(rows: Sequence[EpochRow], rule: StopWhen, patience: int) -> bool:
    """Whether a criterion has not improved for `patience` epochs. It depends only on the rows, so a run can resume."""
    if rule == "never":
        return False
    values = [criterion_of(row, rule) for row in rows]
    known = [-math.inf if value is None else value for value in values]
    return bool(known) and len(known) - 1 - known.index(max(known)) >= patience


def criterion_of(row: EpochRow, rule: Select | StopWhen) -> float | None:
    """The value of an epoch that a rule uses."""
    return row.covering_rate if rule == "covering-rate" else row.approximated_accuracy


class Pick:
    """Stores the state of a method after the best epoch so far by a rule. Checkpoints include it.

    Of equal epochs, the later is selected, as in `metrics.picked`.
    """

    def __init__(self, rule: Select, saved: PickedEpoch | None = None) -> None:
        self.rule = rule
        self.saved = saved  # epoch, value and state of the method; None for the rule "last"

    def see(self, row: EpochRow, method: Method) -> None:
        """Store the method if the epoch that has just ended is the best so far."""
        value = criterion_of(row, self.rule)
        if self.rule == "last" or value is None:
            return
        if self.saved is None or value >= self.saved["value"]:
            state = {name: tensor.detach().clone() for name, tensor in method.state_dict().items()}
            self.saved = {"epoch": row.epoch, "value": value, "method": state}

    def restore(self, method: Method) -> None:
        """Restore the state of the method after the selected epoch."""
        if self.saved is not None:
            method.load_state_dict(self.saved["method"])

    def row(self, rows: list[EpochRow]) -> EpochRow:
        """The row of the selected epoch."""
        return rows[-1 if self.saved is None else self.saved["epoch"]]
