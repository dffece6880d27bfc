"""Prepares a run for training and evaluates it at the end."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from papi.config import Settings, Values
from papi.data import candidates as generators
from papi.data.dataset import Dataset
from papi.data.loader import Loader
from papi.data.views.choose import normaliser_of
from papi.methods.base import Method
from papi.networks import Factory
from papi.networks.pretrained import Pretrained
from papi.runs.checkpoint import State
from papi.runs.model import ModelCard
from papi.runs.parent import Parent
from papi.runs.schema import Arrays, EpochRow, Summary
from papi.setup.build import build_loader, build_method, card_of
from papi.training.devices import find_device, half_precision, require_compiler
from papi.training.engine import EpochEnded
from papi.training.evaluation import Evaluation
from papi.training.evaluator import Evaluator
from papi.training.optim import build_optimizer, learning_rate
from papi.training.resuming import fitted_state
from papi.training.selection import Pick, hold_out
from papi.training.summary import summarise
from papi.training.tally import Tally
from papi.types import Progress


@dataclass(frozen=True)
class Trained:
    """The results of a run in memory."""

    method: Method
    card: ModelCard
    arrays: Arrays
    encoder: nn.Module | None = None  # frozen encoder that embeds photos for the network


@dataclass(frozen=True)
class Run:
    """Everything that the training steps of a run need."""

    settings: Settings
    identity: Values
    dataset: Dataset  # including the validation samples
    candidates: np.ndarray
    statistics: dict[str, float]
    device: torch.device
    parent: Parent | None
    network: Factory | nn.Module | None
    encoder: Pretrained | None
    method: Method
    loader: Loader
    evaluator: Evaluator
    truth: torch.Tensor | None  # true labels of the training samples

    @property
    def idle_notes(self) -> tuple[str, ...]:
        """A note if the method cannot learn from some samples because every class is equally possible for them."""
        if self.method.config.learns_from_full_sets or self.settings.candidates.kind is not None:
            return ()
        idle = np.asarray(self.candidates.all(1))
        if self.dataset.prior is not None:
            idle = idle & (self.dataset.prior.min(1) == self.dataset.prior.max(1))
        if not idle.any():
            return ()
        return (
            f"{self.settings.method} learns nothing from {int(idle.sum()):,} of {len(idle):,} samples, because every "
            "class is a candidate: other methods, such as --method papi, estimate their labels.",
        )

    def fitted(self, state: State) -> State:
        """Check that this run can resume from a saved state, and return the state."""
        scaler = half_precision(self.settings.precision, self.device)[1]
        optimizer = build_optimizer(self.method, self.settings.optim)
        return fitted_state(state, self.method, optimizer, scaler, epochs=self.settings.epochs, steps=len(self.loader))

    def conclude(
        self, rows: list[EpochRow], pick: Pick, test: Evaluation | None, memory: int, trained_epochs: float
    ) -> tuple[Summary, Trained]:
        """Evaluate the model of the selected epoch.

        `test` is the evaluation of the last epoch's network on the test samples, if it is already known.
        """
        method, samples = self.method, self.loader.samples
        if pick.saved is not None:
            pick.restore(method)
            test = None
        picked = pick.row(rows)
        if method.result.autocast is not None:  # a saved model computes in float32, and these are its results
            for network in (method.network, method.result):
                network.autocast = None
            measured = self.evaluator.measure(method)
            picked, test = EpochRow.from_json(picked.to_json() | measured.values), measured.test
            rows = [picked if row.epoch == picked.epoch else row for row in rows]
        temperature = self.evaluator.temperature(method, samples) if self.settings.calibrate else 1.0
        conclusion = self.evaluator.conclude(method, samples, test or self.evaluator.test(method), temperature)
        summary = summarise(
            self.settings,
            self.dataset,
            self.candidates,
            self.statistics,
            rows,
            picked,
            conclusion,
            trained_on=len(samples),
            trained_epochs=trained_epochs,
            temperature=temperature,
            peak_memory=memory,
        )
        card = card_of(self.settings, self.dataset, method, temperature, self.network, self.encoder)
        frozen = None if self.encoder is None or self.settings.tune == "all" else self.encoder.encoder
        return summary, Trained(method, card, conclusion.arrays, frozen)

    def measure_epoch(self, state: State) -> EpochEnded:
        """Return the metrics of an unfinished epoch, from its sums so far."""
        last = Progress(state["epoch"], self.settings.epochs, state["step"] - 1, len(self.loader), self.loader.seed)
        means: Values = dict(Tally(self.truth, state["tally"]).means())
        means |= {"epoch": last.epoch, "learning_rate": learning_rate(self.settings.optim)(last)}
        measured = self.evaluator.measure(self.method)
        row = EpochRow.from_json(means | measured.values | {"seconds": state["seconds"]["total"]})
        return EpochEnded(row, measured.test)


def prepare(
    dataset: Dataset,
    candidates: np.ndarray,
    settings: Settings,
    identity: Values,
    parent: Parent | None = None,
    network: Factory | nn.Module | None = None,
    encoder: Pretrained | None = None,
) -> Run:
    """Split off the validation set, and build the method, its network, the loader and the evaluator."""
    device = find_device(settings.device)
    if settings.compile:
        require_compiler(device)
    training, sets, held_out = hold_out(dataset, candidates, settings.data_holdout, settings.seed, device)
    method = build_method(settings, training, sets, device, parent, network, encoder)
    normalise = normaliser_of(dataset, device)
    return Run(
        settings=settings,
        identity=identity,
        dataset=dataset,
        candidates=candidates,
        statistics=generators.statistics(candidates, dataset.labels),
        device=device,
        parent=parent,
        network=network,
        encoder=encoder,
        method=method,
        loader=build_loader(method, training, settings, normalise, device),
        evaluator=Evaluator(training, normalise, device, held_out),
        truth=None if training.labels is None else torch.from_numpy(training.labels).to(device),
    )
