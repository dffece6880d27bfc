"""CC against its golden value and against a slow version that follows its specification line by line."""

import math

import pytest
import torch
from torch import Tensor
from toy import R0, START, Literal, extremes, golden, make_candidates, make_network, scripted, walk_together

from papi.methods.cc import CC, CCConfig
from papi.types import Batch, Progress


def test_golden_value() -> None:
    method, batch = scripted(CC, R0)
    golden(method.training_step(batch, START).loss, 0.105484)


def test_it_keeps_nothing() -> None:
    method, _ = scripted(CC, R0)
    assert method.confidence is None
    assert [name for name in method.state_dict() if not name.startswith("network.")] == []


class LiteralCC(Literal):
    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        probabilities = self.network(batch.views[0]).logits.softmax(1)
        total = torch.zeros((), dtype=torch.float64)
        for i, n in enumerate(batch.index):
            total = (
                total
                - torch.stack([p for p, c in zip(probabilities[i], self.candidates[n], strict=True) if c]).sum().log()
            )
        return total / len(batch.index)


def test_trajectory_equals_the_literal_version() -> None:
    method = CC(make_network(), make_candidates(), CCConfig()).double()
    walk_together(method, lambda: None, LiteralCC(method.network, method.candidates))


def test_extreme_logits() -> None:
    logits, candidates = extremes()
    method, batch = scripted(CC, logits, candidates=candidates)
    loss = method.training_step(batch, START).loss
    loss.backward()
    assert loss.item() == pytest.approx((600 - math.log(2) + 0 + 600 + math.log(3) + 0) / 4)
    assert method.network.logits[0].grad.isfinite().all()
