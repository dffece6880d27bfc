"""PaPi against golden values and against a slow version that follows the specification line by line."""

import copy
import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from papi.errors import UserError
from papi.methods.clouds import believed, classifier
from papi.methods.losses import candidate_softmax, mixed_kl_divergence, soft_cross_entropy
from papi.methods.papi import PaPi
from papi.methods.papi_settings import PaPiConfig
from papi.methods.state import DenseConfidence, Prototypes
from papi.networks import Network, build
from papi.randomness import draws
from papi.types import Batch, Progress, StepOutput

R0 = torch.tensor([[2, -1, 0.5, 0], [0.1, 0.2, -0.3, 1.5], [-2, 3, 1, 0]])
Y = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=torch.bool)


def angles(*degrees: float) -> Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1).float()


def close(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), atol=2e-6, rtol=0)


class TestGoldenValues:
    def test_candidate_softmax(self) -> None:
        expected = [[0.817575, 0, 0.182426, 0], [0.146398, 0.161795, 0.098134, 0.593673], [0, 1, 0, 0]]
        close(candidate_softmax(R0, Y), expected)

    def test_confidence_update(self) -> None:
        confidence = DenseConfidence(Y)
        confidence.average(torch.arange(3), candidate_softmax(R0, Y), 0.95)
        expected = [[0.515879, 0, 0.484121, 0], [0.244820, 0.245590, 0.242407, 0.267184], [0, 1, 0, 0]]
        close(confidence.value, expected)

    def test_losses(self) -> None:
        confidence = DenseConfidence(Y)
        confidence.average(torch.arange(3), candidate_softmax(R0, Y), 0.95)
        target, partner = confidence.value, confidence.value[torch.tensor([1, 2, 0])]
        close(soft_cross_entropy(R0, target), 0.954606)
        prototypes = angles(0, 90, 180, 270)
        views = (angles(10, 80, 200), angles(350, 120, 100))
        alignment = sum(mixed_kl_divergence(target, partner, 0.6, view @ prototypes.T / 0.3) for view in views)
        close(torch.as_tensor(alignment), 3.996906)

    def test_prototypes(self) -> None:
        prototypes = Prototypes(4, 2)
        prototypes.value = angles(0, 90, 180, 270) * torch.tensor([1, 1, 1, 0])[:, None]
        features = torch.cat([angles(10, 80, 200), angles(350, 120, 100)])
        prototypes.average(features, torch.tensor([0, 3, 1, 0, 2, 1]), 0.9)
        expected = [[0.999998, -0.001742], [-0.115366, 0.993323], [-0.995871, 0.090784], [0.173648, 0.984808]]
        close(prototypes.value, expected)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize(("samples", "classes"), [(1, 2), (40, 3), (64, 10), (512, 10)])
def test_prototypes_in_closed_form_equal_the_loop(samples: int, classes: int, momentum: float) -> None:
    torch.manual_seed(samples)
    features = normalize(torch.randn(samples, 5, dtype=torch.float64))
    labels = torch.randint(0, max(1, classes - 1), (samples,))  # the last class is absent from the batch
    prototypes = Prototypes(classes, 5).double()
    prototypes.value[1:] = normalize(torch.randn(classes - 1, 5, dtype=torch.float64))  # the first starts at zero
    expected = prototypes.value.clone()
    for feature, label in zip(features, labels, strict=True):
        expected[label] = momentum * expected[label] + (1 - momentum) * feature
    prototypes.average(features, labels, momentum)
    torch.testing.assert_close(prototypes.value, normalize(expected), atol=1e-12, rtol=0)


class TestSchedules:
    def at(self, epoch: int, epochs: int = 500, step: int = 0, **options: object) -> tuple[float, float, float]:
        method = make_method(PaPiConfig(**options))  # type: ignore[arg-type]
        return method.momenta_and_weight(Progress(epoch, epochs, step, 10, seed=0))

    def test_released_values(self) -> None:
        assert self.at(0) == (0.99, 0.99, 0.0)
        assert self.at(1) == pytest.approx((0.95, 0.9, 0.1))
        assert self.at(2) == pytest.approx((0.9497, 0.8992, 0.2))
        assert self.at(10)[2] == 1.0
        assert self.at(499) == pytest.approx((0.95 - 0.15 * 498 / 500, 0.9 - 0.4 * 498 / 500, 1.0))

    def test_many_classes_are_aligned_less_in_one_pass(self) -> None:
        for classes, share in ((K, 1.0), (10, 1.0), (20, 0.5), (100, 0.1)):
            sets = torch.eye(classes, dtype=torch.bool)
            torch.manual_seed(0)
            network = build("small", (CHANNELS, SIZE, SIZE), classes, project=True)
            for form, expected in (("one", 2 * share), ("two", 2.0), ("paper", 2.0)):
                method = PaPi(network, sets, PaPiConfig(passes=form, alignment_weight=2.0))  # type: ignore[arg-type]
                assert method.momenta_and_weight(Progress(20, 500, 0, 10, seed=0))[2] == pytest.approx(expected)

    def test_constant_within_an_epoch(self) -> None:
        assert self.at(3, step=0) == self.at(3, step=9)

    @pytest.mark.parametrize("epochs", [1, 2])
    def test_short_runs(self, epochs: int) -> None:
        for epoch in range(epochs):
            assert all(math.isfinite(value) for value in self.at(epoch, epochs))

    def test_by_step_there_is_no_special_first_epoch(self) -> None:
        options = {"schedule": "step", "ramp_epochs": 2.0, "confidence_momentum": (0.4, 0.0)}
        assert self.at(0, 4, step=0, **options) == pytest.approx((0.4, 0.9, 0.0))
        assert self.at(1, 4, step=0, **options) == pytest.approx((0.3, 0.8, 0.5))
        assert self.at(1, 4, step=5, **options) == pytest.approx((0.25, 0.75, 0.75))


N, K, CHANNELS, SIZE = 24, 4, 1, 8
FORMS: tuple[Literal["paper", "two", "one"], ...] = ("paper", "two", "one")


def make_candidates(seed: int = 0, singletons: bool = False) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    truth = torch.randint(0, K, (N,), generator=random)
    mask = torch.zeros(N, K, dtype=torch.bool) if singletons else torch.rand(N, K, generator=random) < 0.5
    mask[torch.arange(N), truth] = True
    mask[0] = True  # a full set
    if singletons:
        mask[0] = torch.arange(K) == truth[0]
    return mask


def make_method(config: PaPiConfig, candidates: Tensor | None = None, seed: int = 0) -> PaPi:
    torch.manual_seed(seed)
    network = build("small", (CHANNELS, SIZE, SIZE), K, project=config.needs_projector).double()
    return PaPi(network, make_candidates() if candidates is None else candidates, config).double()


def make_batch(method: PaPi, epoch: int, step: int, size: int = 8) -> Batch:
    random = torch.Generator().manual_seed(100 * epoch + step)
    index = torch.randperm(N, generator=random)[:size]
    views = tuple(
        torch.randn(size, CHANNELS, SIZE, SIZE, generator=random, dtype=torch.float64) for _ in method.config.view_names
    )
    return Batch(index, views, method.candidates[index])


class LiteralPaPi:
    """Section 2 of the specification, one line after another: separate passes, a loop over samples, no savings."""

    def __init__(self, network: Network, candidates: Tensor, config: PaPiConfig) -> None:
        self.network, self.candidates, self.config = network, candidates, config
        self.P = candidates.double() / candidates.sum(1, keepdim=True)
        assert network.projector is not None
        self.C = torch.zeros(K, network.projection, dtype=torch.float64)

    def project(self, features: Tensor) -> Tensor:
        assert self.network.projector is not None
        projected: Tensor = self.network.projector(features)
        return projected / projected.norm(dim=1, keepdim=True).clamp_min(1e-12)

    def restricted(self, logits: Tensor, candidates: Tensor) -> Tensor:
        probabilities = logits.softmax(1) * candidates
        return probabilities / probabilities.sum(1, keepdim=True)

    def step(self, batch: Batch, progress: Progress) -> Tensor:
        t, T, c = progress.epoch, progress.epochs, self.config
        lam = (
            0.99
            if t == 0
            else c.confidence_momentum[0] + (t - 1) / T * (c.confidence_momentum[1] - c.confidence_momentum[0])
        )
        gamma = (
            0.99
            if t == 0
            else c.prototype_momentum[0] + (t - 1) / T * (c.prototype_momentum[1] - c.prototype_momentum[0])
        )
        weight = c.alignment_weight * min(t / c.ramp_epochs, 1)
        # 1. One share and one permutation for both views.
        random = draws(progress.seed, "mixup", progress.epoch, progress.step)
        m = random.beta(c.mixup_alpha, c.mixup_alpha) if c.mixup else 1.0
        pi = torch.from_numpy(random.permutation(len(batch.index)))
        x_w, x_s = batch.views if len(batch.views) == 2 else (batch.views[0], None)
        # 2. Four passes, both heads on each; the cheaper forms leave some out. `one` has no mixtures.
        if c.passes == "one":
            m, pi = 1.0, torch.arange(len(batch.index))
            passes, clean, aligned = [x_w], (0,), (0,)
        else:
            assert x_s is not None
            mixed_w, mixed_s = m * x_w + (1 - m) * x_w[pi], m * x_s + (1 - m) * x_s[pi]
            if c.passes == "two":
                passes, clean, aligned = [x_w, mixed_s], (0,), (1,)
            else:
                passes, clean, aligned = [x_w, x_s, mixed_w, mixed_s], (0, 1), (2, 3)
        features = [self.network.encoder(x) for x in passes]
        logits = [self.network.classifier(v) for v in features]
        z = [self.project(v) for v in features]
        # 3. Similarities of what is aligned to the prototypes before their update.
        old = self.C.clone()
        similarities = [z[v] @ old.T for v in aligned]
        # 4. and 5. Prototypes, sample by sample, weak view before strong view.
        for v in clean:
            guess = self.restricted(logits[v], batch.candidates).argmax(1)
            for i in range(len(batch.index)):
                k = guess[i]
                self.C[k] = gamma * self.C[k] + (1 - gamma) * z[v][i].detach()
        self.C = self.C / self.C.norm(dim=1, keepdim=True).clamp_min(1e-12)
        # 6. Targets before the loss.
        u = self.restricted(logits[0], batch.candidates).detach()
        self.P[batch.index] = lam * self.P[batch.index] + (1 - lam) * u
        # 7. The loss.
        p, p_partner = self.P[batch.index], self.P[batch.index[pi]]
        size = len(batch.index)
        classification = -(p * logits[0].softmax(1).log()).sum() / size
        if c.second_view_weight:
            classification = classification - c.second_view_weight * (p * logits[1].softmax(1).log()).sum() / size
        outside = (1 - logits[0].softmax(1)).log() * ~batch.candidates
        classification = classification - c.exclusion_weight * outside.sum() / size
        if not c.balance_by_evidence:
            frequencies = logits[0].softmax(1).mean(0).clamp(min=1e-6)
            classification = classification - c.balance_weight * frequencies.log().mean()
        alignment = torch.zeros((), dtype=torch.float64)
        for similarity in similarities:
            s = (similarity / c.temperature).softmax(1)
            for target, share in ((p, m), (p_partner, 1 - m)):
                for i in range(size):
                    for j in range(K):
                        if target[i, j] > 0:
                            alignment = alignment + share * target[i, j] * (target[i, j].log() - s[i, j].log()) / size
        return classification + weight * alignment


TABULAR = PaPiConfig(
    passes="two", mixup=False, second_view_weight=0.7, exclusion_weight=0.9, balance_weight=0.3,
    balance_by_evidence=False, ramp_epochs=2.0,
)  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [*(PaPiConfig(passes=form, mixup_alpha=2.0, ramp_epochs=2.0) for form in FORMS), TABULAR],
    ids=[*FORMS, "for tables"],
)
def test_trajectory_equals_the_literal_version(config: PaPiConfig) -> None:
    method = make_method(config)
    literal = LiteralPaPi(copy.deepcopy(method.network), method.candidates, config)
    method.confidence.value = literal.P.clone()  # thirds in double precision, not widened from float32
    ours = torch.optim.SGD(method.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    theirs = torch.optim.SGD(literal.network.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    for epoch in range(3):
        for step in range(3):
            batch = make_batch(method, epoch, step)
            progress = Progress(epoch, 3, step, 3, seed=5)
            output = method.training_step(batch, progress)
            loss = literal.step(batch, progress)
            torch.testing.assert_close(output.loss, loss, atol=1e-10, rtol=1e-10)
            for optimizer, value in ((ours, output.loss), (theirs, loss)):
                optimizer.zero_grad()
                value.backward()  # type: ignore[no-untyped-call]
            for (name, mine), expected in zip(
                method.network.named_parameters(), literal.network.parameters(), strict=True
            ):
                gradient = mine.grad if mine.grad is not None else torch.zeros_like(mine)
                mine.grad = gradient
                torch.testing.assert_close(gradient, expected.grad, atol=1e-10, rtol=1e-8, msg=name)
            torch.testing.assert_close(method.confidence.value, literal.P, atol=1e-12, rtol=0)
            torch.testing.assert_close(method.prototypes.value, literal.C, atol=1e-10, rtol=0)
            for mine, expected in zip(method.network.buffers(), literal.network.buffers(), strict=True):
                torch.testing.assert_close(mine, expected, atol=1e-11, rtol=0)
            ours.step()
            theirs.step()


@pytest.mark.parametrize("others", [{"passes": "one"}, {"passes": "two"}, {"passes": "two", "alignment": False}])
def test_a_second_view_must_exist_unmixed(others: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="passes=two"):
        PaPiConfig(second_view_weight=1.0, **others)


def test_a_prior_over_the_candidates_excludes_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights have mean one: above one, a label would count as less than outside, and the loss had no minimum."""

    def outputs(exclusion: float) -> StepOutput:
        method = make_method(dataclasses.replace(TABULAR, exclusion_weight=exclusion))
        uneven = torch.linspace(0.1, 1.9, K, dtype=torch.float64)
        monkeypatch.setattr(method.prior, "weigh", lambda batch, *_: torch.where(batch.candidates, uneven, 0.0))
        return method(make_batch(method, 3, 0), Progress(epoch=3, epochs=6, step=0, steps=3, seed=0))

    without, with_it = outputs(0.0), outputs(0.9)
    batch = make_batch(make_method(TABULAR), 3, 0)
    outside = (1 - without.logits.softmax(1)).log() * ~batch.candidates
    expected = -0.9 * outside.sum() / len(batch.index)
    torch.testing.assert_close(with_it.loss - without.loss, expected)


LATE = Progress(epoch=5, epochs=10, step=0, steps=1, seed=0)


class TestGradients:
    """Which inputs and parts the loss of a step may reach."""

    def test_none_from_the_clean_strong_view(self) -> None:
        method = make_method(PaPiConfig())
        passes: list[tuple[Tensor, Tensor]] = []
        method.network.encoder.register_forward_hook(lambda _, inputs, output: passes.append((inputs[0], output)))
        method.training_step(make_batch(method, 0, 0), LATE).loss.backward()  # type: ignore[no-untyped-call]
        assert [output.requires_grad for _, output in passes] == [True, False, True, True]

    def test_classifier_learns_from_the_clean_weak_view_only(self) -> None:
        method = make_method(PaPiConfig())
        batch = make_batch(method, 0, 0)
        method.training_step(batch, LATE).loss.backward()  # type: ignore[no-untyped-call]
        full = method.network.classifier.weight.grad
        alone = make_method(PaPiConfig(alignment=False))
        alone.network.load_state_dict(make_method(PaPiConfig()).network.state_dict(), strict=False)
        alone_batch = Batch(batch.index, batch.views[:1], batch.candidates)
        alone.training_step(alone_batch, LATE).loss.backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(full, alone.network.classifier.weight.grad, atol=1e-12, rtol=0)

    def test_projector_learns_from_mixtures_only(self) -> None:
        method = make_method(PaPiConfig())
        reached: list[bool] = []
        assert method.network.projector is not None
        method.network.projector.register_forward_hook(lambda _, __, output: reached.append(output.requires_grad))
        method.training_step(make_batch(method, 0, 0), LATE)
        assert sorted(reached) == [False, False, True, True]

    def test_memory_carries_no_gradient(self) -> None:
        method = make_method(PaPiConfig())
        method.training_step(make_batch(method, 0, 0), LATE)
        assert not method.confidence.value.requires_grad
        assert not method.prototypes.value.requires_grad

    def test_first_epoch_is_cross_entropy_alone(self) -> None:
        method = make_method(PaPiConfig())
        output = method.training_step(make_batch(method, 0, 0), Progress(0, 10, 0, 1, seed=0))
        output.loss.backward()  # type: ignore[no-untyped-call]
        assert output.loss == output.logs["loss_classification"]
        assert method.network.projector is not None
        assert all(parameter.grad is None for parameter in method.network.projector.parameters())


class TestCheaperForms:
    """Two passes and one: the same guidance from fewer looks at the images."""

    def hooked(self, config: PaPiConfig) -> tuple[list[Tensor], list[bool], list[bool]]:
        """Of a late step: what the encoder saw, which of its outputs and of the projections carry a gradient."""
        method = make_method(config)
        inputs: list[Tensor] = []
        encoded: list[bool] = []
        projected: list[bool] = []

        def see(_: nn.Module, given: tuple[Tensor], output: Tensor) -> None:
            inputs.append(given[0])
            encoded.append(output.requires_grad)

        method.network.encoder.register_forward_hook(see)
        assert method.network.projector is not None
        method.network.projector.register_forward_hook(lambda _, __, output: projected.append(output.requires_grad))
        self.batch = make_batch(method, 0, 0)
        method.training_step(self.batch, LATE).loss.backward()  # type: ignore[no-untyped-call]
        return inputs, encoded, projected

    def test_two_passes(self) -> None:
        inputs, encoded, projected = self.hooked(PaPiConfig(passes="two"))
        assert encoded == [True, True]
        assert sorted(projected) == [False, True]  # prototypes take the clean weak view; the mixture is aligned
        torch.testing.assert_close(inputs[0], self.batch.views[0])
        generator = draws(LATE.seed, "mixup", LATE.epoch, LATE.step)
        share = generator.beta(8, 8)
        partner = torch.from_numpy(generator.permutation(8))
        strong = self.batch.views[1]
        torch.testing.assert_close(inputs[1], share * strong + (1 - share) * strong[partner])

    def test_one_pass(self) -> None:
        inputs, encoded, projected = self.hooked(PaPiConfig(passes="one"))
        assert encoded == [True]
        assert projected == [True]  # one projection is aligned, and serves the prototypes
        assert len(self.batch.views) == 1
        torch.testing.assert_close(inputs[0], self.batch.views[0])

    @pytest.mark.parametrize("passes", ["two", "one"])
    def test_without_weight_only_the_classifier_learns(self, passes: Literal["two", "one"]) -> None:
        method = make_method(PaPiConfig(passes=passes))
        output = method.training_step(make_batch(method, 0, 0), Progress(0, 10, 0, 1, seed=0))
        output.loss.backward()  # type: ignore[no-untyped-call]
        assert output.loss == output.logs["loss_classification"]
        assert method.network.projector is not None
        assert all(parameter.grad is None for parameter in method.network.projector.parameters())

    @pytest.mark.parametrize("passes", ["two", "one"])
    def test_classifier_learns_from_the_clean_weak_view_only(self, passes: Literal["two", "one"]) -> None:
        method, alone = make_method(PaPiConfig(passes=passes)), make_method(PaPiConfig(alignment=False))
        alone.network.load_state_dict(method.network.state_dict(), strict=False)
        batch = make_batch(method, 0, 0)
        for each in (method, alone):
            views = batch.views if each is method else batch.views[:1]
            each.training_step(Batch(batch.index, views, batch.candidates), LATE).loss.backward()  # type: ignore[no-untyped-call]
        mine, expected = (each.network.classifier.weight.grad for each in (method, alone))
        torch.testing.assert_close(mine, expected, atol=1e-12, rtol=0)

    def test_two_passes_without_mixup_align_the_clean_strong_view(self) -> None:
        inputs, encoded, _ = self.hooked(PaPiConfig(passes="two", mixup=False))
        assert encoded == [True, True]
        torch.testing.assert_close(inputs[1], self.batch.views[1])


class TestVariants:
    def test_without_alignment_equals_weight_zero(self) -> None:
        """Variant 2: all gradients of encoder and classifier agree with the full method while its weight is 0."""
        full, variant = make_method(PaPiConfig(alignment_weight=0.0)), make_method(PaPiConfig(alignment=False))
        variant.network.load_state_dict(full.network.state_dict(), strict=False)
        batch = make_batch(full, 0, 0)
        full.training_step(batch, LATE).loss.backward()  # type: ignore[no-untyped-call]
        variant.training_step(Batch(batch.index, batch.views[:1], batch.candidates), LATE).loss.backward()  # type: ignore[no-untyped-call]
        for part in ("encoder", "classifier"):
            modules: tuple[nn.Module, ...] = (getattr(full.network, part), getattr(variant.network, part))
            for a, b in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
                torch.testing.assert_close(a.grad, b.grad, atol=1e-12, rtol=0)
        torch.testing.assert_close(full.confidence.value, variant.confidence.value)

    def test_without_mixup_aligns_the_clean_views(self) -> None:
        method = make_method(PaPiConfig(mixup=False))
        method.prototypes.value = normalize(torch.randn_like(method.prototypes.value))
        passes: list[bool] = []
        method.network.encoder.register_forward_hook(lambda _, __, output: passes.append(output.requires_grad))
        old = method.prototypes.value.clone()
        batch = make_batch(method, 0, 0)
        reference = copy.deepcopy(method.network)
        output = method.training_step(batch, LATE)
        assert passes == [True, True]
        target = method.confidence[batch.index]
        expected = torch.zeros((), dtype=torch.float64)
        for view in batch.views:
            s = (reference.project(reference.encoder(view)) @ old.T / 0.3).softmax(1)
            expected = expected + (torch.xlogy(target, target) - target * s.log()).sum() / len(batch.index)
        torch.testing.assert_close(output.logs["loss_alignment"], expected, atol=1e-10, rtol=0)

    @pytest.mark.parametrize(
        ("views", "names"), [("SW", ("weak", "strong")), ("SS", ("strong", "strong")), ("WW", ("weak", "weak"))]
    )
    def test_compositions(self, views: str, names: tuple[str, ...]) -> None:
        assert make_method(PaPiConfig(views=views)).config.view_names == names  # type: ignore[arg-type]
        assert make_method(PaPiConfig(views=views, alignment=False)).config.view_names == names[:1]  # type: ignore[arg-type]


class TestInvariants:
    def run(self, method: PaPi, size: int = 8) -> None:
        for epoch in range(3):
            for step in range(3):
                output = method.training_step(
                    make_batch(method, epoch, step, size), Progress(epoch, 3, step, 3, seed=0)
                )
                assert torch.isfinite(output.loss)
                confidence, prototypes = method.confidence.value, method.prototypes.value
                assert (confidence >= 0).all()
                torch.testing.assert_close(confidence.sum(1), torch.ones(N, dtype=torch.float64))
                assert (confidence[~method.candidates] == 0).all()
                norms = prototypes.norm(dim=1)
                assert ((norms - 1).abs().lt(1e-9) | (norms == 0)).all()

    @pytest.mark.parametrize("size", [2, 5, N])
    def test_state_stays_valid(self, size: int) -> None:
        self.run(make_method(PaPiConfig()), size)

    def test_singletons_never_change(self) -> None:
        mask = make_candidates(singletons=True)
        method = make_method(PaPiConfig(), mask)
        self.run(method)
        torch.testing.assert_close(method.confidence.value, mask.double(), rtol=0, atol=0)

    def test_extreme_logits(self) -> None:
        method = make_method(PaPiConfig())
        with torch.no_grad():
            method.network.classifier.weight.mul_(1e4)
        method.training_step(make_batch(method, 0, 0), LATE).loss.backward()  # type: ignore[no-untyped-call]
        assert torch.isfinite(method.confidence.value).all()
        assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)


class TestClouds:
    """Half-way, Gaussian classes decide the confidence; before the last epoch, they decide the classifier."""

    EPOCHS = 4

    def batches(self, method: PaPi) -> Iterator[Batch]:
        random = torch.Generator().manual_seed(1)
        for index in torch.arange(len(method.candidates)).split(5):
            images = torch.randn(len(index), CHANNELS, SIZE, SIZE, generator=random, dtype=torch.float64)
            yield Batch(index, (images,), method.candidates[index])

    def at(self, epoch: int) -> Progress:
        return Progress(epoch, self.EPOCHS, 0, 1, seed=0)

    def test_they_set_the_confidence_once_and_the_classifier_once(self) -> None:
        method = make_method(PaPiConfig(alignment=False, cloud_rounds=2))
        for epoch in range(self.EPOCHS):
            confidence, weight = method.confidence.all_rows.clone(), method.network.classifier.weight.clone()
            new_phase = method.start_epoch(self.at(epoch), lambda: self.batches(method))
            assert confidence.equal(method.confidence.all_rows) == (epoch != 2)
            assert weight.equal(method.network.classifier.weight) == (epoch != 3)
            assert new_phase == (epoch == 3)
            assert method.network.training

    def test_afterwards_the_confidence_follows_the_classifier_more_and_more(self) -> None:
        method = make_method(PaPiConfig(alignment=False, cloud_rounds=2, confidence_momentum=(0.2, 0.0)))
        momenta = [method.momenta_and_weight(Progress(epoch, 8, 0, 1, seed=0))[0] for epoch in range(1, 8)]
        assert momenta[:3] == pytest.approx([0.2, 0.175, 0.15])
        assert momenta[3:] == pytest.approx([0.95, 0.7125, 0.475, 0.2375])

    def test_the_classifier_becomes_the_one_of_the_gaussians_and_no_surer(self) -> None:
        method = make_method(PaPiConfig(alignment=False, cloud_rounds=2))
        method.network.eval()
        with torch.no_grad():
            seen = [method.network(each.views[0]) for each in self.batches(method)]
        sets, features = method.candidates, torch.cat([each.features for each in seen]).double()
        logits = torch.cat([each.logits for each in seen])
        belief = candidate_softmax(logits, sets).double()
        weight, bias = classifier(features.T @ features, belief.T @ features, belief.sum(0), len(features))
        method.end_with_clouds(method.rows_of(lambda: self.batches(method)))
        with torch.no_grad():
            ours = method.network.classifier(features.to(logits.dtype)).double()
        scale = ours.flatten() @ (features @ weight + bias).flatten() / (features @ weight + bias).square().sum()
        torch.testing.assert_close(ours, scale * (features @ weight + bias), rtol=1e-4, atol=1e-5)
        likelihoods = [
            (logits.double().softmax(1) * (factor * ours).log_softmax(1)).sum() for factor in (0.9, 1.0, 1.1)
        ]
        assert likelihoods[1] >= max(likelihoods[0], likelihoods[2])

    def test_they_decide_by_the_features_of_the_network(self) -> None:
        method = make_method(PaPiConfig(alignment=False, cloud_rounds=2))
        method.network.eval()
        with torch.no_grad():
            seen = [(method.network.encode(each.views[0]), each.candidates) for each in self.batches(method)]
        expected = believed(lambda: seen, method.confidence.all_rows, 2)
        method.network.train()
        method.start_epoch(self.at(2), lambda: self.batches(method))
        torch.testing.assert_close(method.confidence.all_rows, expected)
        assert method.network.training

    def test_with_alignment_they_are_silent(self) -> None:
        method = make_method(PaPiConfig(cloud_rounds=2))
        before = method.confidence.all_rows.clone()
        method.start_epoch(self.at(2), lambda: self.batches(method))
        assert before.equal(method.confidence.all_rows)
