"""LWS against golden values and against a slow version that follows its specification line by line."""

from typing import Literal as OneOf

import pytest
import torch
from torch import Tensor
from toy import (
    R0,
    R1,
    START,
    Literal,
    N,
    Y,
    extremes,
    golden,
    make_batch,
    make_candidates,
    make_network,
    scripted,
    walk_together,
)

from papi.methods.lws import LWS, LWSConfig
from papi.networks import Network
from papi.types import Batch, Progress

Loss = OneOf["sigmoid", "cross-entropy"]


@pytest.mark.parametrize(
    ("loss", "beta", "expected"), [("sigmoid", 1, 0.362119), ("sigmoid", 2, 0.538719), ("cross-entropy", 1, 0.770985)]
)
def test_golden_losses(loss: Loss, beta: float, expected: float) -> None:
    method, batch = scripted(LWS, R0, loss=loss, beta=beta)
    golden(method.training_step(batch, START).loss, expected)


def test_golden_weights() -> None:
    """A quarter everywhere, until the second pass, after the step, tells candidates and others apart."""
    method, batch = scripted(LWS, R1, R0)
    method.training_step(batch, START)
    golden(method.weights, torch.full((3, 4), 0.25))
    method.after_step(batch, START)
    expected = [
        [0.817575, 0.268941, 0.182426, 0.731058],
        [0.146398, 0.161795, 0.098134, 0.593673],
        [0.035119, 1, 0.705384, 0.259496],
    ]
    golden(method.weights, expected)
    assert method.network.with_gradient == [True, False]


class LiteralLWS(Literal):
    def __init__(self, network: Network, candidates: Tensor, config: LWSConfig) -> None:
        super().__init__(network, candidates)
        self.config = config
        self.state = torch.full(candidates.shape, 1 / candidates.shape[1], dtype=torch.float64)

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        logits = self.network(batch.views[0]).logits
        probabilities = logits.softmax(1)
        total = torch.zeros((), dtype=torch.float64)
        for i, n in enumerate(batch.index):
            for j in range(self.candidates.shape[1]):
                r, p, weight = logits[i, j], probabilities[i, j], self.state[n, j]
                if self.config.loss == "sigmoid":
                    term = 1 / (1 + r.exp()) if self.candidates[n, j] else self.config.beta / (1 + (-r).exp())
                else:
                    term = -p.log() if self.candidates[n, j] else -self.config.beta * (1 - p).log()
                total = total + weight * term
        return total / len(batch.index)

    @torch.no_grad()
    def update(self, batch: Batch) -> None:
        """A second pass with the new parameters; candidates and others are normalised apart."""
        outputs = self.network(batch.views[0]).logits.softmax(1)
        for i, n in enumerate(batch.index):
            inside, outside = outputs[i] * self.candidates[n], outputs[i] * ~self.candidates[n]
            self.state[n] = inside / inside.sum() + outside / outside.sum().clamp_min(1e-300)


@pytest.mark.parametrize("beta", [0.0, 2.0])
@pytest.mark.parametrize("loss", ["sigmoid", "cross-entropy"])
def test_trajectory_equals_the_literal_version(loss: Loss, beta: float) -> None:
    config = LWSConfig(loss=loss, beta=beta)
    method = LWS(make_network(), make_candidates(), config).double()
    walk_together(method, lambda: method.weights, LiteralLWS(method.network, method.candidates, config))


def test_invariants_of_the_weights() -> None:
    """Rows sum to one before their first update; then to two, or to one where every label is a candidate."""
    method = LWS(make_network(), make_candidates(), LWSConfig()).double()
    seen = torch.zeros(N, dtype=torch.bool)
    full = method.candidates.all(1)
    for step in range(6):
        batch = make_batch(method, 0, step)
        method.training_step(batch, START)
        method.after_step(batch, START)
        seen[batch.index] = True
        assert (method.weights >= 0).all()
        torch.testing.assert_close(method.weights.sum(1), torch.where(seen & ~full, 2.0, 1.0).double())
        inside = (method.weights * method.candidates).sum(1)
        torch.testing.assert_close(inside[seen], torch.ones(int(seen.sum()), dtype=torch.float64))


def test_weights_are_part_of_the_checkpoint() -> None:
    method, _ = scripted(LWS, R0)
    assert "weights" in method.state_dict()
    assert method.confidence is None


@pytest.mark.parametrize("loss", ["sigmoid", "cross-entropy"])
def test_extreme_logits(loss: Loss) -> None:
    logits, candidates = extremes()
    method, batch = scripted(LWS, logits, logits, candidates=candidates, loss=loss)
    for _ in range(2):
        method.network.with_gradient.clear()
        value = method.training_step(batch, START).loss
        value.backward()
        method.after_step(batch, START)
        assert value.isfinite()
        assert method.network.logits[0].grad.isfinite().all()
        assert method.weights.isfinite().all()


def test_a_logit_of_zero_has_a_gradient() -> None:
    method, batch = scripted(LWS, torch.zeros(3, 4))
    method.training_step(batch, START).loss.backward()
    golden(method.network.logits[0].grad, torch.where(Y, -1.0, 1.0) * 0.25 * 0.25 / 3)
