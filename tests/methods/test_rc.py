"""RC against golden values and against a slow version that follows its specification line by line."""

import torch
from torch import Tensor
from toy import (
    R0,
    R1,
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

from papi.methods.rc import RC, RCConfig
from papi.networks import Network
from papi.types import Batch, Progress


def test_golden_values() -> None:
    """The second pass, after the step, gives the new confidence, and it takes no part in the gradient."""
    method, batch = scripted(RC, R1, R0)
    method.training_step(batch, START)
    golden(method.confidence.value, Y / Y.sum(1, keepdim=True))
    method.after_step(batch, START)
    golden(method.confidence.value, SOFTMAX_R0)
    assert method.network.with_gradient == [True, False]
    method, batch = scripted(RC, R0)
    golden(method.training_step(batch, START).loss, 0.971430)


class LiteralRC(Literal):
    def __init__(self, network: Network, candidates: Tensor) -> None:
        super().__init__(network, candidates)
        self.state = candidates.double() / candidates.sum(1, keepdim=True)

    def loss(self, batch: Batch, progress: Progress) -> Tensor:
        outputs = self.network(batch.views[0]).logits.softmax(1)
        total = torch.zeros((), dtype=torch.float64)
        for i, n in enumerate(batch.index):
            for j in range(self.candidates.shape[1]):
                total = total - self.state[n, j] * outputs[i, j].log()
        return total / len(batch.index)

    @torch.no_grad()
    def update(self, batch: Batch) -> None:
        """A second pass with the new parameters; then the whole matrix is normalised once more, as in the release."""
        outputs = self.network(batch.views[0]).logits.softmax(1)
        for i, n in enumerate(batch.index):
            self.state[n] = outputs[i] * self.candidates[n]
        self.state /= self.state.sum(1, keepdim=True)


def test_trajectory_equals_the_literal_version() -> None:
    method = RC(make_network(), make_candidates(), RCConfig()).double()
    literal = LiteralRC(method.network, method.candidates)
    method.confidence.value = literal.state.clone()  # thirds in double precision, not widened from float32
    walk_together(method, lambda: method.confidence.value, literal)


def test_extreme_logits() -> None:
    logits, candidates = extremes()
    method, batch = scripted(RC, logits, logits, candidates=candidates)
    loss = method.training_step(batch, START).loss
    loss.backward()
    method.after_step(batch, START)
    assert loss.isfinite()
    assert method.network.logits[0].grad.isfinite().all()
    golden(method.confidence.value.sum(1), torch.ones(4))
    assert (method.confidence.value[~candidates] == 0).all()


def test_the_second_pass_is_in_training_mode() -> None:
    """Batch-norm takes in the batch twice, as in the release."""
    method = RC(make_network(), make_candidates(), RCConfig()).double()
    counter = method.network.encoder.stem.norm.num_batches_tracked  # type: ignore[union-attr]
    images = torch.zeros(2, 1, 8, 8, dtype=torch.float64)
    batch = Batch(torch.arange(2), (images,), method.candidates[:2])
    method.training_step(batch, START)
    method.after_step(batch, START)
    assert counter == 2
