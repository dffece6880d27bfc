"""Choosing the epoch whose model is kept by samples that have candidate sets and were not trained on."""

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
    """Samples that a run is judged by. Of their labels only the candidates are known here."""

    rows: np.ndarray  # (N,) bool: which of all samples they are
    samples: Tensor  # (M, C, H, W) uint8 or (M, d) float32, on the device
    candidates: np.ndarray  # (M, K) bool
    prior: np.ndarray | None = None  # (M, K) float32, if something is known of their candidates


def hold_out(
    dataset: Dataset, candidates: np.ndarray, share: float, seed: int, device: torch.device
) -> tuple[Dataset, np.ndarray, HeldOut | None]:
    """Split samples and candidate sets at random into those to train on and those held out; none at share 0."""
    if share == 0:
        return dataset, candidates, None
    count = round(share * len(candidates))
    if not 0 < count <= len(candidates) - 2:
        raise UserError(
            f"{dataset.name} has {len(candidates)} training samples, too few to hold out {share:g} of them: "
            "change --data.holdout, or train without it."
        )
    rows = np.zeros(len(candidates), bool)
    rows[draws(seed, "held-out candidates").permutation(len(candidates))[:count]] = True
    samples = on_device(dataset.samples[rows], device)
    prior = None if dataset.prior is None else dataset.prior[rows]
    return dataset.taking(np.flatnonzero(~rows)), candidates[~rows], HeldOut(rows, samples, candidates[rows], prior)


def has_stopped_rising(rows: Sequence[EpochRow], rule: StopWhen, patience: int) -> bool:
    """Whether a criterion has had no new best value for so many epochs. The rows alone decide, so a run can resume."""
    if rule == "never":
        return False
    values = [criterion_of(row, rule) for row in rows]
    known = [-math.inf if value is None else value for value in values]
    return bool(known) and len(known) - 1 - known.index(max(known)) >= patience


def criterion_of(row: EpochRow, rule: Select | StopWhen) -> float | None:
    """The value of an epoch that a rule goes by."""
    return row.covering_rate if rule == "covering-rate" else row.approximated_accuracy


class Pick:
    """Remembers a method as it was after the epoch that a rule likes best so far. Its memory goes into checkpoints.

    Of equal epochs the later is taken, as `metrics.picked` does.
    """

    def __init__(self, rule: Select, saved: PickedEpoch | None = None) -> None:
        self.rule = rule
        self.saved = saved  # epoch, value and state of the method; None for the last epoch, which needs no memory

    def see(self, row: EpochRow, method: Method) -> None:
        """Take note of an epoch that has just ended."""
        value = criterion_of(row, self.rule)
        if self.rule == "last" or value is None:
            return
        if self.saved is None or value >= self.saved["value"]:
            state = {name: tensor.detach().clone() for name, tensor in method.state_dict().items()}
            self.saved = {"epoch": row.epoch, "value": value, "method": state}

    def restore(self, method: Method) -> None:
        """Bring a method back to the picked epoch."""
        if self.saved is not None:
            method.load_state_dict(self.saved["method"])

    def row(self, rows: list[EpochRow]) -> EpochRow:
        """The measurements of the picked epoch."""
        return rows[-1 if self.saved is None else self.saved["epoch"]]
