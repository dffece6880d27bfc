"""PiCO against golden values and against a slow version that follows the specification line by line."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from papi.errors import UserError
from papi.methods.losses import info_nce, supervised_contrastive
from papi.methods.pico import PiCO, PiCOConfig
from papi.methods.state import DenseConfidence, Prototypes
from papi.networks import Network, build
from papi.types import Batch, Progress, StepOutput

R0 = torch.tensor([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]])
Y = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=torch.bool)
N, K, CHANNELS, SIZE = 24, 4, 1, 8
EPOCHS, STEPS = 3, 3
LATE = Progress(epoch=5, epochs=10, step=0, steps=1, seed=0)


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1).float()


def close(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=2e-6, rtol=0)


class TestGoldenValues:
    query, key, queue = angles(10, 80, 200), angles(350, 120, 100), angles(45, 225)

    def test_confidence_update(self) -> None:
        prototypes = Prototypes(4, 2)
        prototypes.value = angles(0, 90, 180, 270)
        confidence = DenseConfidence(Y)
        belief = make_method(PiCOConfig()).belief(R0, prototypes.scores(self.query), Y, Y)
        confidence.average(torch.arange(3), belief, 0.95)
        close(confidence.value, [[0.525, 0, 0.475, 0], [0.2375, 0.2875, 0.2375, 0.2375], [0, 1, 0, 0]])

    def test_supervised_contrastive(self) -> None:
        labels, queue_labels = torch.tensor([0, 3, 1]), torch.tensor([1, 0])
        close(supervised_contrastive(self.query, self.key, self.queue, labels, queue_labels, 0.07), 12.034289)

    def test_info_nce(self) -> None:
        close(info_nce(self.query, self.key, self.queue, 0.07), 5.578378)

    def test_rows_without_a_label_are_never_positive(self) -> None:
        """Not even of each other, and they are no different from rows of another class."""
        labels = torch.tensor([0, 3, 1])
        unlabelled, others = (
            supervised_contrastive(self.query, self.key, self.queue, labels, torch.full((2,), label), 0.07)
            for label in (-1, 2)
        )
        assert unlabelled == others


def make_candidates() -> Tensor:
    random = torch.Generator().manual_seed(0)
    mask = torch.rand(N, K, generator=random) < 0.5
    mask[torch.arange(N), torch.randint(0, K, (N,), generator=random)] = True
    mask[0] = True  # a full set
    mask[1] = torch.arange(K) == 2  # a single label
    return mask


def make_truth(candidates: Tensor) -> Tensor:
    return torch.multinomial(candidates.double(), 1, generator=torch.Generator().manual_seed(1))[:, 0]


def make_method(config: PiCOConfig, seed: int = 0) -> PiCO:
    torch.manual_seed(seed)
    candidates = make_candidates()
    truth = {"truth": make_truth(candidates)} if config.needs_truth else {}
    network = build("small", (CHANNELS, SIZE, SIZE), K, project=config.needs_projector)
    return PiCO(network, candidates, config, **truth).double()


def make_batch(method: PiCO, epoch: int, step: int, size: int = 8) -> Batch:
    random = torch.Generator().manual_seed(100 * epoch + step)
    index = torch.randperm(N, generator=random)[:size]
    views = tuple(
        torch.randn(size, CHANNELS, SIZE, SIZE, generator=random, dtype=torch.float64) for _ in method.config.view_names
    )
    return Batch(index, views, method.candidates[index])


def train(method: PiCO, optimizer: torch.optim.Optimizer, epoch: int, step: int, size: int = 8) -> Tensor:
    output: StepOutput = method(make_batch(method, epoch, step, size), Progress(epoch, EPOCHS, step, STEPS, seed=0))
    optimizer.zero_grad()
    output.loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return output.loss.detach()


def sgd(module: torch.nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=0.05, momentum=0.9)


class LiteralPiCO:
    """Section 3 of the specification, one line after another, with a loop over every pair of features."""

    def __init__(self, method: PiCO) -> None:
        self.config, self.truth = method.config, method.truth
        self.f_q: Network = copy.deepcopy(method.network)
        self.f_k: Network = copy.deepcopy(method.network)
        self.P = method.confidence.value.clone()
        self.C = torch.zeros(K, method.network.projection, dtype=torch.float64)
        self.queue = [row.clone() for row in method.queue.features]
        self.queue_labels = [-1] * len(self.queue)
        self.pointer = 0

    @staticmethod
    def unit(projected: Tensor) -> Tensor:
        length: Tensor = projected.norm(dim=1, keepdim=True)
        return projected / length.clamp_min(1e-12)

    def step(self, batch: Batch, progress: Progress) -> Tensor:
        c, size, e, T = self.config, len(batch.index), progress.epoch, progress.epochs
        x_w, x_s = batch.views
        # 1. Logits and query features; the guess is the best candidate.
        v = self.f_q.encoder(x_w)
        r = self.f_q.classifier(v)
        assert self.f_q.projector is not None
        assert self.f_k.projector is not None
        z_q = self.unit(self.f_q.projector(v))
        guess = [int((r[i].softmax(0) * batch.candidates[i]).argmax()) for i in range(size)]
        # 2. Scores of the prototypes before their update.
        s = (z_q @ self.C.T).softmax(1).detach()
        # 3. Prototypes, one query after another.
        for i in range(size):
            self.C[guess[i]] = c.prototype_momentum * self.C[guess[i]] + (1 - c.prototype_momentum) * z_q[i].detach()
        self.C = self.unit(self.C)
        # 4. and 5. The key network moves, then sees the strong view.
        with torch.no_grad():
            for theta_k, theta_q in zip(self.f_k.parameters(), self.f_q.parameters(), strict=True):
                theta_k.copy_(c.encoder_momentum * theta_k + (1 - c.encoder_momentum) * theta_q)
            z_k = self.unit(self.f_k.projector(self.f_k.encoder(x_s)))
        # 6. All features there are to compare with; then the queue takes in the keys.
        labels = guess if self.truth is None else [int(self.truth[i]) for i in batch.index]
        queue, queue_labels = list(self.queue), list(self.queue_labels)
        features, all_labels = [*z_q, *z_k, *queue], [*labels, *labels, *queue_labels]
        for i in range(size):
            self.queue[self.pointer], self.queue_labels[self.pointer] = z_k[i], labels[i]
            self.pointer = (self.pointer + 1) % len(self.queue)
        # 7. Confidence before the loss.
        warm = e < c.warmup_epochs
        if not warm:
            start, end = c.confidence_momentum
            phi = 0.99 if e == 0 else start + (e - 1) / T * (end - start)
            for i in range(size):
                inside = batch.candidates[i]
                soft = (r[i].softmax(0) * inside / (r[i].softmax(0) * inside).sum()).detach()
                u = torch.zeros(K, dtype=torch.float64)
                if c.guidance == "prototypes":
                    u[int((s[i] * inside).argmax())] = 1
                elif c.guidance == "classifier-hard":
                    u[int(soft.argmax())] = 1
                else:
                    u = soft
                self.P[batch.index[i]] = phi * self.P[batch.index[i]] + (1 - phi) * u
        # 8. The loss.
        L_cls = -(self.P[batch.index] * r.log_softmax(1)).sum() / size
        L_cont = torch.zeros((), dtype=torch.float64)
        for i in range(size):
            if warm:
                columns, positives = [z_k[i], *queue], [0]
            else:
                columns = [feature for j, feature in enumerate(features) if j != i]
                positives = [j for j, label in enumerate(all_labels[:i] + all_labels[i + 1 :]) if label == labels[i]]
            similarity = torch.stack([(z_q[i] * a).sum() / c.temperature for a in columns])
            for j in positives:
                L_cont = L_cont - (similarity[j].exp() / similarity.exp().sum()).log() / len(positives) / size
        loss: Tensor = L_cls + c.contrastive_weight * L_cont
        return loss


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positives": "truth"},
        {"positives": "truth", "guidance": "classifier"},
        {"guidance": "classifier-hard", "warmup_epochs": 0.0, "encoder_momentum": 0.9},
    ],
    ids=["PiCO", "v2", "v3", "v3 hard, by its own guess"],
)
def test_trajectory_equals_the_literal_version(options: dict[str, Any]) -> None:
    config = PiCOConfig(**{"queue": 20, "temperature": 0.2} | options)  # 8 does not divide 20
    method = make_method(config)
    literal = LiteralPiCO(method)
    ours, theirs = sgd(method), sgd(literal.f_q)
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            batch, progress = make_batch(method, epoch, step), Progress(epoch, EPOCHS, step, STEPS, seed=0)
            loss = literal.step(batch, progress)
            theirs.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.testing.assert_close(train(method, ours, epoch, step), loss.detach(), atol=1e-10, rtol=1e-10)
            for (name, mine), expected in zip(method.network.named_parameters(), literal.f_q.parameters(), strict=True):
                torch.testing.assert_close(mine.grad, expected.grad, atol=1e-9, rtol=1e-7, msg=name)
            theirs.step()
            torch.testing.assert_close(method.confidence.value, literal.P, atol=1e-12, rtol=0)
            torch.testing.assert_close(method.prototypes.value, literal.C, atol=1e-10, rtol=0)
            torch.testing.assert_close(method.queue.features, torch.stack(literal.queue), atol=1e-9, rtol=0)
            assert method.queue.labels.tolist() == literal.queue_labels
            assert int(method.queue.pointer) == literal.pointer
            for pair in ((method.key_network.value, literal.f_k), (method.network, literal.f_q)):
                for mine, expected in zip(pair[0].state_dict().values(), pair[1].state_dict().values(), strict=True):
                    torch.testing.assert_close(mine, expected, atol=1e-10, rtol=0)


def test_confidence_momentum_as_released() -> None:
    method = make_method(PiCOConfig())
    values = [method.confidence_momentum(Progress(epoch, 500, 0, 1, seed=0)) for epoch in (0, 1, 2, 499)]
    assert values == pytest.approx([0.99, 0.95, 0.9497, 0.95 - 0.15 * 498 / 500])
    assert math.isfinite(method.confidence_momentum(Progress(0, 1, 0, 1, seed=0)))


class TestWarmUp:
    @pytest.mark.parametrize(("epochs", "moves"), [(1.0, [False, True]), (0.5, [True, True]), (2.0, [False, False])])
    def test_confidence_waits(self, epochs: float, moves: list[bool]) -> None:
        """At the last step of the first and of the second epoch."""
        for epoch, expected in enumerate(moves):
            method = make_method(PiCOConfig(warmup_epochs=epochs, queue=16))
            before = method.confidence.value.clone()
            method.training_step(make_batch(method, 0, 0), Progress(epoch, EPOCHS, STEPS - 1, STEPS, seed=0))
            assert (not before.equal(method.confidence.value)) == expected

    def test_prototypes_and_queue_do_not(self) -> None:
        method = make_method(PiCOConfig(queue=16))
        method.training_step(make_batch(method, 0, 0), Progress(0, EPOCHS, 0, STEPS, seed=0))
        assert (method.prototypes.value != 0).any()
        assert (method.queue.labels[:8] >= 0).all()
        assert (method.queue.labels[8:] == -1).all()


class TestPasses:
    def test_two_forward_one_backward(self) -> None:
        method = make_method(PiCOConfig(queue=16))
        passes: list[bool] = []
        for network in (method.network, method.key_network.value):
            network.encoder.register_forward_hook(lambda _, __, output: passes.append(output.requires_grad))
        method.training_step(make_batch(method, 0, 0), LATE)
        assert passes == [True, False]

    def test_key_network_trains_its_batch_norm_but_gets_no_gradient(self) -> None:
        method = make_method(PiCOConfig(queue=16))
        train(method, sgd(method), 1, 0)
        statistics = dict(method.key_network.value.named_buffers())["encoder.stem.norm.running_mean"]
        assert (statistics != 0).any()
        assert all(weight.grad is None for weight in method.key_network.parameters())


class TestOracle:
    def test_only_with_true_positives(self) -> None:
        assert PiCOConfig(positives="truth").needs_truth
        assert not PiCOConfig(guidance="classifier").needs_truth
        assert make_method(PiCOConfig()).truth is None

    def test_true_labels_are_not_saved(self) -> None:
        method = make_method(PiCOConfig(positives="truth"))
        assert method.truth is not None
        assert not any("truth" in name for name in method.state_dict())


class TestInvariants:
    @pytest.mark.parametrize("size", [2, 5, N])
    @pytest.mark.parametrize("queue", [3, 20, 64])
    def test_state_stays_valid(self, size: int, queue: int) -> None:
        method = make_method(PiCOConfig(queue=queue))
        optimizer = sgd(method)
        for epoch in range(EPOCHS):
            for step in range(STEPS):
                assert torch.isfinite(train(method, optimizer, epoch, step, size))
                confidence = method.confidence.value
                assert (confidence >= 0).all()
                torch.testing.assert_close(confidence.sum(1), torch.ones(N, dtype=torch.float64))
                assert (confidence[~method.candidates] == 0).all()
                torch.testing.assert_close(confidence[1], method.candidates[1].double())  # a single label
                norms = method.prototypes.value.norm(dim=1)
                assert ((norms - 1).abs().lt(1e-9) | (norms == 0)).all()
                torch.testing.assert_close(method.queue.features.norm(dim=1), torch.ones(queue, dtype=torch.float64))

    @pytest.mark.parametrize("guidance", ["prototypes", "classifier", "classifier-hard"])
    def test_extreme_logits(self, guidance: Any) -> None:
        """Also where all candidates of an image are beyond underflow."""
        method = make_method(PiCOConfig(queue=N, guidance=guidance)).float()
        with torch.no_grad():
            method.network.classifier.weight.zero_()
            method.network.classifier.bias.copy_(torch.tensor([300.0, -300, -300, 0]))
        batch = make_batch(method, 0, 0, N)
        batch = Batch(batch.index, tuple(view.float() for view in batch.views), batch.candidates)
        for progress in (Progress(0, EPOCHS, 0, STEPS, seed=0), LATE):
            output = method.training_step(batch, progress)
            output.loss.backward()  # type: ignore[no-untyped-call]
            assert torch.isfinite(output.loss)
            assert all(torch.isfinite(p.grad).all() for p in method.network.parameters() if p.grad is not None)
            assert torch.isfinite(method.confidence.value).all()
            assert (method.confidence.value[~method.candidates] == 0).all()
            assert method.candidates[batch.index, method.queue.labels].all()  # the guesses


@pytest.mark.parametrize("pause", [(0, 1), (1, 2)], ids=["in the warm-up", "after it"])
def test_goes_on_bit_by_bit_after_a_save(pause: tuple[int, int]) -> None:
    method = make_method(PiCOConfig(queue=20))
    optimizer = sgd(method)
    places = [(epoch, step) for epoch in range(EPOCHS) for step in range(STEPS)]
    for place in places[: places.index(pause)]:
        train(method, optimizer, *place)
    other = make_method(PiCOConfig(queue=20), seed=9)
    other_optimizer = sgd(other)
    other.load_state_dict(copy.deepcopy(method.state_dict()))
    other_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for place in places[places.index(pause) :]:
        assert train(method, optimizer, *place).equal(train(other, other_optimizer, *place))
    for name, value in method.state_dict().items():
        assert value.equal(other.state_dict()[name]), name


def test_an_empty_queue_is_refused() -> None:
    with pytest.raises(UserError, match="queue must be above 0; got 0"):
        PiCOConfig(queue=0)
