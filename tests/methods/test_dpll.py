"""DPLL against golden values and against a slow version that follows its specification line by line."""

import pytest
import torch
from torch import Tensor
from toy import (
    LATE,
    R0,
    R1,
    R2,
    START,
    Literal,
    Y,
    extremes,
    golden,
    make_candidates,
    make_network,
    scripted,
    walk_together,
)

from papi.methods.dpll import DPLL, DPLLConfig
from papi.networks import Network
from papi.types import Batch, Progress

EXCLUSION, CONSISTENCY = 0.101967, 0.278283 + 1.065492 + 0.609894


@pytest.mark.parametrize(
    ("epoch", "weight", "ramp", "expected"),
    [
        (0, 1.0, 100, EXCLUSION),
        (50, 1.0, 100, EXCLUSION + 0.5 * CONSISTENCY),
        (100, 1.0, 100, EXCLUSION + CONSISTENCY),
        (199, 0.3, 100, EXCLUSION + 0.3 * CONSISTENCY),
        (0, 1.0, 0, EXCLUSION + CONSISTENCY),
    ],
)
def test_golden_losses_and_ramp(epoch: int, weight: float, ramp: float, expected: float) -> None:
    method, batch = scripted(DPLL, R0, R1, R2, consistency_weight=weight, ramp_epochs=ramp)
    output = method.training_step(batch, Progress(epoch, 200, 0, 1, seed=0))
    golden(output.loss, expected)
    golden(output.logs["loss_exclusion"], EXCLUSION)
    golden(output.logs["loss_consistency"], CONSISTENCY)


def test_golden_confidence() -> None:
    method, batch = scripted(DPLL, R0, R1, R2)
    golden(method.confidence.value, Y / Y.sum(1, keepdim=True))
    method.training_step(batch, START)
    expected = [[0.697059, 0, 0.302941, 0], [0.364358, 0.228485, 0.193408, 0.213749], [0, 1, 0, 0]]
    golden(method.confidence.value, expected)


class LiteralDPLL(Literal):
    def __init__(self, network: Network, candidates: Tensor, config: DPLLConfig) -> None:
        super().__init__(network, candidates)
        self.config = config
        self.state = candidates.double() / candidates.sum(1, keepdim=True)

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        self.outputs = [self.network(view).logits.softmax(1) for view in batch.views]
        exclusion = consistency = torch.zeros((), dtype=torch.float64)
        for i, n in enumerate(batch.index):
            for j in range(self.candidates.shape[1]):
                if not self.candidates[n, j]:
                    exclusion = exclusion - (1 - self.outputs[0][i, j]).log()
                    continue
                p = self.state[n, j]
                for view in self.outputs:
                    consistency = consistency + p * (p.log() - view[i, j].log())
        weight = self.config.consistency_weight * min(progress.epoch / self.config.ramp_epochs, 1)
        return (weight * consistency + exclusion) / len(batch.index)

    def update(self, batch: Batch) -> None:
        """After the step, from the outputs before it: the normalised geometric mean over the views."""
        for i, n in enumerate(batch.index):
            product = torch.ones(self.candidates.shape[1], dtype=torch.float64)
            for view in self.outputs:
                product = product * view[i].detach() ** (1 / len(self.outputs))
            self.state[n] = product * self.candidates[n] / (product * self.candidates[n]).sum()


def test_trajectory_equals_the_literal_version() -> None:
    config = DPLLConfig(ramp_epochs=2.0, consistency_weight=0.7)
    method = DPLL(make_network(), make_candidates(), config).double()
    literal = LiteralDPLL(method.network, method.candidates, config)
    method.confidence.value = literal.state.clone()  # thirds in double precision, not widened from float32
    walk_together(method, lambda: method.confidence.value, literal)


def test_extreme_logits() -> None:
    logits, candidates = extremes()
    method, batch = scripted(DPLL, logits, -logits, logits.flip(0), candidates=candidates)
    loss = method.training_step(batch, LATE).loss
    loss.backward()
    assert loss.isfinite()
    assert all(each.grad.isfinite().all() for each in method.network.logits)
    golden(method.confidence.value.sum(1), torch.ones(4))
    assert (method.confidence.value[~candidates] == 0).all()


@pytest.mark.parametrize(
    ("views", "names"),
    [("2SW", ("weak", "strong", "strong")), ("3S", ("strong",) * 3), ("3W", ("weak",) * 3)],
)
def test_compositions(views: str, names: tuple[str, ...]) -> None:
    assert scripted(DPLL, views=views)[0].config.view_names == names
