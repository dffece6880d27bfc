"""PRODEN against golden values and against a slow version that follows its specification line by line."""

import torch
from torch import Tensor
from toy import (
    R0,
    SOFTMAX_R0,
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

from papi.methods.proden import PRODEN, PRODENConfig
from papi.networks import Network
from papi.types import Batch, Progress


def test_golden_values() -> None:
    method, batch = scripted(PRODEN, R0)
    golden(method.confidence.value, Y / Y.sum(1, keepdim=True))
    golden(method.training_step(batch, START).loss, 0.971430)
    golden(method.confidence.value, SOFTMAX_R0)


class LiteralPRODEN(Literal):
    def __init__(self, network: Network, candidates: Tensor) -> None:
        super().__init__(network, candidates)
        self.state = candidates.double() / candidates.sum(1, keepdim=True)

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        self.outputs = self.network(batch.views[0]).logits.softmax(1)
        total = torch.zeros((), dtype=torch.float64)
        for i, n in enumerate(batch.index):
            for j in range(self.candidates.shape[1]):
                if self.candidates[n, j]:
                    total = total - self.state[n, j] * self.outputs[i, j].log()
        return total / len(batch.index)

    def update(self, batch: Batch) -> None:
        """After the step, from the outputs before it."""
        for i, n in enumerate(batch.index):
            inside = self.outputs[i].detach() * self.candidates[n]
            self.state[n] = inside / inside.sum()


def test_trajectory_equals_the_literal_version() -> None:
    method = PRODEN(make_network(), make_candidates(), PRODENConfig()).double()
    literal = LiteralPRODEN(method.network, method.candidates)
    method.confidence.value = literal.state.clone()  # thirds in double precision, not widened from float32
    walk_together(method, lambda: method.confidence.value, literal)


def test_a_candidate_can_come_back() -> None:
    """A probability that underflows to zero is no verdict: the candidate sets stay the mask."""
    logits, candidates = extremes()
    method, batch = scripted(PRODEN, logits, torch.zeros_like(logits), candidates=candidates)
    method.training_step(batch, START)
    assert (method.confidence.value[1] == 0).any()
    method.training_step(batch, START)
    golden(method.confidence.value, candidates / candidates.sum(1, keepdim=True))


def test_extreme_logits() -> None:
    logits, candidates = extremes()
    method, batch = scripted(PRODEN, logits, candidates=candidates)
    loss = method.training_step(batch, START).loss
    loss.backward()
    assert loss.isfinite()
    assert method.network.logits[0].grad.isfinite().all()
    golden(method.confidence.value.sum(1), torch.ones(4))
    assert (method.confidence.value[~candidates] == 0).all()


def test_views() -> None:
    assert scripted(PRODEN)[0].config.view_names == ("weak",)
    assert scripted(PRODEN, view="plain")[0].config.view_names == ("plain",)
