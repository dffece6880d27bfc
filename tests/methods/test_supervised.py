"""The upper bound: ordinary cross-entropy, and the only method of its kind."""

import torch
from torch import Tensor
from toy import R0, START, Literal, Scripted, Y, golden, make_candidates, make_network, walk_together

from papi.methods.supervised import Supervised, SupervisedConfig
from papi.types import Batch, Progress

TRUTH = torch.tensor([0, 3, 1])


def test_it_learns_the_true_labels() -> None:
    method = Supervised(Scripted(R0), Y, SupervisedConfig(), TRUTH)  # type: ignore[arg-type]
    batch = Batch(torch.tensor([2, 0, 1]), (torch.zeros(3, 1),), Y[[2, 0, 1]])
    expected = -sum(R0.softmax(1)[row, label].log() for row, label in enumerate((1, 0, 3))) / 3
    golden(method.training_step(batch, START).loss, expected)


class LiteralSupervised(Literal):
    truth: Tensor

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        probabilities = self.network(batch.views[0]).logits.softmax(1)
        return -torch.stack([probabilities[i, self.truth[n]].log() for i, n in enumerate(batch.index)]).mean()


def test_trajectory_equals_the_literal_version() -> None:
    candidates = make_candidates()
    truth = candidates.int().argmax(1)
    method = Supervised(make_network(), candidates, SupervisedConfig(), truth).double()
    literal = LiteralSupervised(method.network, candidates)
    literal.truth = truth
    walk_together(method, lambda: None, literal)


def test_it_is_an_oracle_and_saves_no_labels() -> None:
    assert SupervisedConfig().needs_truth
    method = Supervised(make_network(), Y, SupervisedConfig(), TRUTH)
    assert "truth" not in method.state_dict()
