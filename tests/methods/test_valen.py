"""VALEN against golden values and against a slow version that follows the specification line by line."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence

from papi.errors import UserError
from papi.methods.losses import dirichlet_kl
from papi.methods.valen import VALEN, VALENConfig
from papi.networks import Network, build
from papi.randomness import seed_torch
from papi.types import Batch, Progress, StepOutput

N, K, SHAPE = 24, 4, (1, 8, 8)
WARM, EPOCHS, STEPS = 1, 3, 3


def test_golden_prior() -> None:
    logits = torch.tensor([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]])
    prior = dirichlet_kl((logits / 4).exp().clamp(0.01, 30))
    torch.testing.assert_close(prior, torch.tensor(0.324990), atol=2e-6, rtol=0)


def make_images() -> Tensor:
    return torch.randn(N, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def make_candidates() -> Tensor:
    random = torch.Generator().manual_seed(0)
    mask = torch.rand(N, K, generator=random) < 0.5
    mask[torch.arange(N), torch.randint(0, K, (N,), generator=random)] = True
    mask[0] = True  # a full set
    mask[1] = torch.arange(K) == 2  # a single label
    return mask


def make_method(seed: int = 0, **options: Any) -> VALEN:
    torch.manual_seed(seed)
    config = VALENConfig(**{"warmup_epochs": WARM} | options)
    network = build("small", SHAPE, K, project=config.needs_projector)
    return VALEN(network, make_candidates(), config, shape=SHAPE).double()


def make_batch(method: VALEN, epoch: int, step: int, size: int = 8) -> Batch:
    random = torch.Generator().manual_seed(100 * epoch + step)
    index = torch.randperm(N, generator=random)[:size]
    dtype = method.confidence.value.dtype
    return Batch(index, (make_images()[index].to(dtype),), method.candidates[index])


def all_samples(method: VALEN) -> Iterator[Batch]:
    for index in torch.arange(N).tensor_split(3):
        yield Batch(index, (make_images()[index].to(method.confidence.value.dtype),), method.candidates[index])


def at(epoch: int, step: int = 0) -> Progress:
    return Progress(epoch, EPOCHS, step, STEPS, seed=3)


def begin(method: VALEN) -> None:
    """Enter the second phase."""
    assert method.start_epoch(at(method.config.warmup_epochs), lambda: all_samples(method))


def train(method: VALEN, optimizer: torch.optim.Optimizer, epoch: int, step: int, size: int = 8) -> Tensor:
    """A step as the engine does it."""
    if step == 0 and method.start_epoch(at(epoch), lambda: all_samples(method)):
        optimizer.state.clear()
    seed_torch(at(epoch).seed, "step", epoch, step)
    batch = make_batch(method, epoch, step, size)
    output: StepOutput = method(batch, at(epoch, step))
    optimizer.zero_grad()
    output.loss.backward()  # type: ignore[no-untyped-call]
    for parameter in method.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    method.after_step(batch, at(epoch, step))
    return output.loss.detach()


def sgd(*modules: nn.Module) -> torch.optim.SGD:
    weights = [weight for module in modules for weight in module.parameters()]
    return torch.optim.SGD(weights, lr=0.05, momentum=0.9, weight_decay=1e-3)


class LiteralVALEN:
    """Section 5 of the specification, one line after another, with a dense graph of all samples."""

    def __init__(self, method: VALEN) -> None:
        self.config, self.Y = method.config, method.candidates
        self.net: Network = copy.deepcopy(method.network)
        self.enc: Network = copy.deepcopy(method.network)
        self.o = method.confidence.value.clone()
        self.d = self.o.clone()
        self.A = torch.zeros(N, N, dtype=torch.float64)

    def cross_entropy(self, logits: Tensor, target: Tensor) -> Tensor:
        return -(target * logits.softmax(1).log()).sum() / len(logits)

    def restricted(self, logits: Tensor, mask: Tensor) -> Tensor:
        probabilities = logits.softmax(1) * mask
        return (probabilities / probabilities.sum(1, keepdim=True)).detach()

    def warm_up(self, index: Tensor, x: Tensor) -> Tensor:
        r = self.net(x).logits
        loss = self.cross_entropy(r, self.o[index])
        self.o[index] = self.restricted(r, self.Y[index])
        return loss

    def between(self, decoder: nn.Module) -> None:
        self.net.eval()
        with torch.no_grad():
            features = self.net(make_images()).features
        self.net.train()
        for i in range(N):
            distance = [float((features[i] - features[j]).norm()) for j in range(N)]
            nearest = sorted((j for j in range(N) if j != i), key=lambda j: distance[j])[: self.config.neighbours]
            for j in [i, *nearest]:
                self.A[i, j] = 1 / (self.config.neighbours + 1)
        self.enc = copy.deepcopy(self.net)
        self.dec = copy.deepcopy(decoder)
        self.d = self.o.clone()

    def step(self, index: Tensor, x: Tensor) -> Tensor:
        c, M = self.config, self.Y[index].double()
        r, a = self.net(x).logits, self.enc(x).logits
        s = a.softmax(1) * M
        s = s / s.sum(1, keepdim=True).detach() + 1e-2
        L_d = self.cross_entropy(a, self.o[index])
        alpha = (a / 4).exp().clamp(0.01, 30)
        L_KL = kl_divergence(Dirichlet(alpha), Dirichlet(torch.ones_like(alpha))).mean()
        sample = Dirichlet(s).rsample()
        L_rec = 0.01 * (self.dec(sample) - x.reshape(len(x), -1)).square().mean()
        likelihood = M * sample.sigmoid().log() + (1 - M) * (1 - sample.sigmoid()).log()
        L_rec = L_rec - 0.01 * likelihood.mean()
        links = (sample @ sample.T).sigmoid().softmax(1)
        L_rec = L_rec + (links - self.A[index][:, index]).square().mean()
        L_o = self.cross_entropy(r, self.d[index])
        loss: Tensor = (
            c.reconstruction_weight * L_rec
            + c.prior_weight * L_KL
            + c.distribution_weight * L_d
            + c.prediction_weight * L_o
        )
        corrected = sample.detach() * M
        corrected = corrected / corrected.sum(1, keepdim=True)
        self.d[index] = c.correction * corrected + (1 - c.correction) * self.o[index]
        self.o[index] = self.restricted(r, M)
        return loss


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbours": 1, "correction": 1.0, "distribution_weight": 2.0, "prior_weight": 0.7},
        {"warmup_epochs": 0, "correction": 0.0, "reconstruction_weight": 3.0, "prediction_weight": 0.5},
    ],
    ids=["as released", "other weights", "no warm-up"],
)
def test_trajectory_equals_the_literal_version(options: dict[str, Any]) -> None:
    method = make_method(**options)
    literal = LiteralVALEN(method)
    ours, theirs = sgd(method), sgd(literal.net)
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            batch = make_batch(method, epoch, step)
            loss = train(method, ours, epoch, step)
            if epoch == method.config.warmup_epochs and step == 0:
                decoder = copy.deepcopy(method.decoder)  # it has made its step: draw its first values again
                seed_torch(at(0).seed, "decoder")
                for layer in (decoder[0], decoder[2]):
                    nn.init.xavier_normal_(layer.weight)  # type: ignore[arg-type]
                    nn.init.constant_(layer.bias, 0.01)  # type: ignore[arg-type]
                literal.between(decoder)
                theirs = sgd(literal.net, literal.enc, literal.dec)
            seed_torch(at(epoch).seed, "step", epoch, step)
            warm = epoch < method.config.warmup_epochs
            expected = (literal.warm_up if warm else literal.step)(batch.index, batch.views[0])
            torch.testing.assert_close(loss, expected.detach(), atol=1e-9, rtol=1e-9)
            theirs.zero_grad()
            expected.backward()  # type: ignore[no-untyped-call]
            parts = [(method.network, literal.net)]
            if not warm:
                parts += [(method.encoder, literal.enc), (method.decoder, literal.dec)]  # type: ignore[list-item]
                torch.testing.assert_close(method.neighbours.adjacency(torch.arange(N)).double(), literal.A)
            for mine, other in parts:
                for (name, weight), known in zip(mine.named_parameters(), other.parameters(), strict=True):
                    torch.testing.assert_close(weight.grad, known.grad, atol=1e-8, rtol=1e-6, msg=name)
            theirs.step()
            for mine, other in parts:
                for value, known in zip(mine.state_dict().values(), other.state_dict().values(), strict=True):
                    torch.testing.assert_close(value, known, atol=1e-8, rtol=0)
            torch.testing.assert_close(method.confidence.value, literal.o, atol=1e-9, rtol=0)
            if not warm:
                torch.testing.assert_close(method.distribution.value, literal.d, atol=1e-9, rtol=0)


class TestPhases:
    def test_a_new_phase_is_announced_once(self) -> None:
        method = make_method()
        assert [method.start_epoch(at(e), lambda: all_samples(method)) for e in range(3)] == [False, True, False]

    def test_second_phase_starts_from_the_first(self) -> None:
        method = make_method()
        optimizer = sgd(method)
        for step in range(STEPS):
            train(method, optimizer, 0, step)
        statistics = {name: value.clone() for name, value in method.network.state_dict().items()}
        begin(method)
        for name, value in method.encoder.state_dict().items():
            assert value.equal(statistics[name]), name
            assert method.network.state_dict()[name].equal(value), name  # evaluation left no trace
        assert method.network.training
        assert method.distribution.value.equal(method.confidence.value)
        assert all((layer.bias == 0.01).all() for layer in method.decoder if isinstance(layer, nn.Linear))
        assert (method.neighbours.value >= 0).all()

    def test_decoder_does_not_depend_on_what_was_drawn_before(self) -> None:
        one, other = make_method(), make_method()
        torch.manual_seed(1)
        begin(one)
        torch.manual_seed(2)
        begin(other)
        for a, b in zip(one.decoder.parameters(), other.decoder.parameters(), strict=True):
            assert a.equal(b)

    def test_passes(self) -> None:
        """One forward and one backward pass in the warm-up, then two of each."""
        method = make_method()
        begin(method)
        passes: list[str] = []

        def note(_: nn.Module, __: Any, output: Tensor) -> None:
            passes.append("forward")
            output.register_hook(lambda _: passes.append("backward"))  # type: ignore[no-untyped-call]

        for network in (method.network, method.encoder):
            network.encoder.register_forward_hook(note)
        for epoch, count in ((0, 1), (WARM, 2)):
            passes.clear()
            method.training_step(make_batch(method, 0, 0), at(epoch)).loss.backward()  # type: ignore[no-untyped-call]
            assert (passes.count("forward"), passes.count("backward")) == (count, count)


@pytest.mark.parametrize(
    ("term", "reached"),
    [
        ("reconstruction_weight", {"encoder", "decoder"}),
        ("prior_weight", {"encoder"}),
        ("distribution_weight", {"encoder"}),
        ("prediction_weight", {"network"}),
    ],
)
def test_what_each_term_teaches(term: str, reached: set[str]) -> None:
    weights = dict.fromkeys(("reconstruction_weight", "prior_weight", "distribution_weight", "prediction_weight"), 0.0)
    method = make_method(0, **weights | {term: 1.0})
    begin(method)
    method.training_step(make_batch(method, 0, 0), at(WARM)).loss.backward()  # type: ignore[no-untyped-call]
    for name in ("network", "encoder", "decoder"):
        gradients = [p.grad for p in getattr(method, name).parameters() if p.grad is not None]
        assert any((gradient != 0).any() for gradient in gradients) == (name in reached)


def test_warm_up_teaches_the_network_alone() -> None:
    method = make_method()
    method.training_step(make_batch(method, 0, 0), at(0)).loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in method.network.parameters())
    assert all(p.grad is None for p in [*method.encoder.parameters(), *method.decoder.parameters()])


class TestInvariants:
    @pytest.mark.parametrize("size", [2, 5, N])
    def test_state_stays_valid(self, size: int) -> None:
        method = make_method()
        optimizer = sgd(method)
        for epoch in range(EPOCHS):
            for step in range(STEPS):
                assert torch.isfinite(train(method, optimizer, epoch, step, size))
                for memory in (method.confidence.value, method.distribution.value):
                    assert (memory >= 0).all()
                    torch.testing.assert_close(memory.sum(1), torch.ones(N, dtype=torch.float64))
                    assert (memory[~method.candidates] == 0).all()
                    torch.testing.assert_close(memory[1], method.candidates[1].double())  # a single label

    def test_a_candidate_at_zero_can_come_back(self) -> None:
        method = make_method()
        begin(method)
        method.confidence.value[0] = method.distribution.value[0] = torch.tensor([1.0, 0, 0, 0])
        batch = Batch(torch.arange(8), (make_images()[:8],), method.candidates[:8])
        seed_torch(0, "step")
        method.training_step(batch, at(WARM))
        assert (method.confidence.value[0] > 0).all()
        assert (method.distribution.value[0] > 0).all()

    @pytest.mark.parametrize("size", [300.0, 1000.0])
    def test_extreme_logits(self, size: float) -> None:
        """Also where all candidates of an image are beyond underflow."""
        method = make_method().float()
        begin(method)
        with torch.no_grad():
            for network in (method.network, method.encoder):
                network.classifier.weight.zero_()
                network.classifier.bias.copy_(torch.tensor([size, -size, -size, 0]))
        for step in range(20):
            seed_torch(0, "step", 0, step)
            method.zero_grad()
            output = method.training_step(make_batch(method, 0, step, N), at(WARM, step))
            output.loss.backward()  # type: ignore[no-untyped-call]
            assert torch.isfinite(output.loss)
            assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)
            for memory in (method.confidence.value, method.distribution.value):
                assert torch.isfinite(memory).all()
                assert (memory[~method.candidates] == 0).all()

    def test_the_same_step_draws_the_same_sample(self) -> None:
        losses = []
        for _ in range(2):
            method = make_method()
            begin(method)
            torch.randn(7)  # what else is drawn does not matter
            losses.append(train(method, sgd(method), WARM, 1))
        assert losses[0].equal(losses[1])


@pytest.mark.parametrize("pause", [(0, 2), (1, 0), (1, 1), (2, 0)])
def test_goes_on_bit_by_bit_after_a_save(pause: tuple[int, int]) -> None:
    """In the warm-up, between the phases, within the first epoch of the second phase and after it."""
    method = make_method()
    optimizer = sgd(method)
    places = [(epoch, step) for epoch in range(EPOCHS) for step in range(STEPS)]
    for place in places[: places.index(pause)]:
        train(method, optimizer, *place)
    other = make_method(seed=9)
    other_optimizer = sgd(other)
    other.load_state_dict(copy.deepcopy(method.state_dict()))
    other_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for place in places[places.index(pause) :]:
        assert train(method, optimizer, *place).equal(train(other, other_optimizer, *place))
    for name, value in method.state_dict().items():
        assert value.equal(other.state_dict()[name]), name


def test_options() -> None:
    assert VALENConfig().needs_shape
    assert not VALENConfig().needs_truth
    assert make_method().config.view_names == ("weak",)
    assert make_method(view="plain").config.view_names == ("plain",)
    with pytest.raises(UserError, match="warmup_epochs must be 0 or more; got -1"):
        VALENConfig(warmup_epochs=-1)
